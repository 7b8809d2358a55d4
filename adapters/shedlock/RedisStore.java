import com.google.gson.JsonObject;
import java.lang.reflect.Method;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** ShedLock on Redis, by Spring's RedisConnectionFactory. */
final class RedisStore implements Store {
    private static final String ENVIRONMENT = "default"; // a part of the key
    private static final Method SAFE_UPDATE = safeUpdate(); // null: an older release (6.6), which is not safe
    private final boolean safe;
    private LettuceConnectionFactory link;

    /** `safe`: a lock is released and extended only if it is still that of the caller (safeUpdate). */
    RedisStore(boolean safe) {
        this.safe = safe;
        if (safe && SAFE_UPDATE == null) throw new UnsupportedOperationException("this release has no safeUpdate");
    }

    @Override
    public void open(JsonObject node) {
        link = Lettuce.connected(node);
    }

    @Override
    public LockProvider provider() {
        RedisLockProvider.Builder builder = new RedisLockProvider.Builder(link).environment(ENVIRONMENT);
        try {
            if (SAFE_UPDATE != null) SAFE_UPDATE.invoke(builder, safe);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
        return builder.build();
    }

    private static Method safeUpdate() {
        try {
            return RedisLockProvider.Builder.class.getMethod("safeUpdate", boolean.class);
        } catch (NoSuchMethodException error) {
            return null;
        }
    }

    @Override
    public void describe(JsonObject hello, boolean hosts) {
        hello.addProperty("name", safe ? "ShedLock on Redis with safeUpdate" : "ShedLock on Redis");
        hello.addProperty("source", "ShedLock, InternalRedisLockProvider.java");
        if (hosts) hello.addProperty("lease_key", "job-lock:" + ENVIRONMENT + ":{resource}");
    }
}
