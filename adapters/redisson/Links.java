import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.StreamSupport;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.renewal.LockRenewalScheduler;

/** The connections, one client of the library for each server and lease, which live until the program ends. */
final class Links {
    private static final Map<String, RedissonClient> OPENED = new ConcurrentHashMap<>();

    /** The clients of the nodes of an open request, in its order. */
    static List<RedissonClient> of(JsonObject open) {
        long lease = open.get("lease_ms").getAsLong();
        return StreamSupport.stream(open.get("nodes").getAsJsonArray().spliterator(), false)
            .map(node -> OPENED.computeIfAbsent(node + " " + lease, made -> connect(node, lease))).toList();
    }

    static LockRenewalScheduler renewals(RedissonClient link) {
        return ((Redisson) link).getCommandExecutor().getServiceManager().getRenewalScheduler();
    }

    /**
     * Gives each client a new watchdog for the lock objects that are made from now on. A timer of the old one that is still
     * to come would otherwise go on beside the next one's, for the library ends it only when it finds nothing to renew.
     */
    static void renewWatchdogs() {
        for (RedissonClient link : OPENED.values()) {
            CommandAsyncExecutor executor = ((Redisson) link).getCommandExecutor();
            executor.getServiceManager().register(new LockRenewalScheduler(executor));
        }
    }

    /** Few threads and connections, for each client is a JVM; timeouts short enough to notice a silent server. */
    private static RedissonClient connect(JsonElement node, long lease) {
        JsonObject at = node.getAsJsonObject();
        Config config = new Config().setThreads(2).setNettyThreads(2).setLockWatchdogTimeout(lease);
        config.useSingleServer()
            .setAddress("redis://" + at.get("host").getAsString() + ":" + at.get("port").getAsInt())
            .setTimeout(1000).setSubscriptionTimeout(1000).setConnectTimeout(10_000).setPingConnectionInterval(1000)
            .setRetryAttempts(2).setRetryDelay(new ConstantDelay(Duration.ofMillis(200)))
            .setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        return Redisson.create(config);
    }
}
