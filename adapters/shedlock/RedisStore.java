import com.google.gson.JsonObject;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock on Redis, by Spring's RedisConnectionFactory. */
final class RedisStore implements Store {
    private static final String ENVIRONMENT = "default"; // a part of the key
    private final boolean safe;
    private LettuceConnectionFactory link;

    /** `safe`: a lock is released and extended only if it is still that of the caller (safeUpdate). */
    RedisStore(boolean safe) {
        this.safe = safe;
    }

    @Override
    public void open(JsonObject node) {
        link = Lettuce.connected(node);
    }

    @Override
    public LockProvider provider() {
        return new RedisLockProvider.Builder(link).environment(ENVIRONMENT).safeUpdate(safe).build();
    }

    @Override
    public void describe(JsonObject hello, boolean hosts) {
        hello.addProperty("name", safe ? "ShedLock on Redis with safeUpdate" : "ShedLock on Redis");
        hello.addProperty("source", "ShedLock, InternalRedisLockProvider.java");
        if (hosts) hello.addProperty("lease_key", "job-lock:" + ENVIRONMENT + ":{resource}");
    }
}
