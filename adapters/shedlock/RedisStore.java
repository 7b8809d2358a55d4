import com.google.gson.JsonObject;
import io.lettuce.core.ClientOptions;
import io.lettuce.core.resource.DefaultClientResources;
import java.time.Duration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
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

    /** Few threads, for each client is a JVM; a command is not sent again when its connection was lost. */
    @Override
    public void open(JsonObject node) {
        LettuceClientConfiguration client = LettuceClientConfiguration.builder()
            .clientResources(DefaultClientResources.builder().ioThreadPoolSize(2).computationThreadPoolSize(2).build())
            .clientOptions(ClientOptions.builder().replayFilter(command -> true).build())
            .commandTimeout(Duration.ofSeconds(1)).shutdownTimeout(Duration.ZERO).build();
        link = new LettuceConnectionFactory(
            new RedisStandaloneConfiguration(node.get("host").getAsString(), node.get("port").getAsInt()), client);
        link.afterPropertiesSet();
        link.start();
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
