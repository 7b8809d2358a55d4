package lockstorm;

import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;

@SpringBootApplication
public class Application {
    public static void main(String[] words) {
        SpringApplication.run(Application.class, words);
    }

    @Bean(destroyMethod = "shutdown")
    RedissonClient redisson() {
        Config config = new Config().setThreads(4).setNettyThreads(2).setLockWatchdogTimeout(1000);
        config.useSingleServer()
            .setAddress(System.getenv("REDIS_URL"))
            .setConnectionMinimumIdleSize(4)
            .setConnectionPoolSize(4)
            .setSubscriptionConnectionPoolSize(4);
        return Redisson.create(config);
    }
}
