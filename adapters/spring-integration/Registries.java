import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.scheduling.concurrent.ThreadPoolTaskScheduler;

/** The registry, by which the locks of a program know each other. Its connections live until the program ends. */
final class Registries {
    static final String PREFIX = "locks"; // of the keys
    private static final Map<String, LettuceConnectionFactory> OPENED = new ConcurrentHashMap<>();
    private final boolean published, renewed;
    private LettuceConnectionFactory link;
    private long leaseMs;
    private boolean fixed; // the lease
    private volatile RedisLockRegistry current;
    private ThreadPoolTaskScheduler renewals;

    /** `published`: waiters wait for a message, instead of polling; `renewed`: the registry renews what is held. */
    Registries(boolean published, boolean renewed) {
        this.published = published;
        this.renewed = renewed;
    }

    void open(JsonObject request) {
        JsonObject node = request.get("nodes").getAsJsonArray().get(0).getAsJsonObject();
        link = OPENED.computeIfAbsent(node.toString(), made -> Lettuce.connected(node));
        leaseMs = request.get("lease_ms").getAsLong();
        fixed = request.get("fixed_lease").getAsBoolean();
        renew();
    }

    RedisLockRegistry current() {
        return current;
    }

    /** Makes a new registry: threads that have ended may hold the local locks of the old one for ever. */
    void renew() {
        if (current != null) current.destroy();
        if (renewals != null) renewals.shutdown();
        RedisLockRegistry registry = new RedisLockRegistry(link, PREFIX, leaseMs);
        if (published) registry.setRedisLockType(RedisLockType.PUB_SUB_LOCK);
        renewals = null;
        if (renewed && !fixed) {
            renewals = new ThreadPoolTaskScheduler(); // of one thread
            renewals.setDaemon(true);
            renewals.initialize();
            registry.setRenewalTaskScheduler(renewals);
        }
        current = registry;
    }
}
