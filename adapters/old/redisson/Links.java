import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import io.netty.util.Timeout;
import java.lang.reflect.Field;
import java.lang.reflect.Method;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.StreamSupport;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.SingleServerConfig;

/** The Links of ../../redisson for releases from 3.8 to 3.52: what some of them lack is looked up by name. */
final class Links {
    private static final Map<String, RedissonClient> OPENED = new ConcurrentHashMap<>();

    /** What the servers are together: with these releases single ones only. */
    static String topology = "single";

    /** The clients of the nodes of an open request, in its order. */
    static List<RedissonClient> of(JsonObject open) {
        if (!topology.equals("single")) throw new IllegalStateException("no " + topology + " with a release before 4");
        long lease = open.get("lease_ms").getAsLong();
        return StreamSupport.stream(open.get("nodes").getAsJsonArray().spliterator(), false)
            .map(node -> OPENED.computeIfAbsent(node + " " + lease, made -> connect(node, lease))).toList();
    }

    /** Ends all renewals, those of older programs of calls, too. */
    static void renewWatchdogs() {
        try {
            for (RedissonClient link : OPENED.values()) replaceScheduler(link);
            for (String holder : List.of("RedissonBaseLock EXPIRATION_RENEWAL_MAP", "RedissonLock EXPIRATION_RENEWAL_MAP",
                "RedissonLock expirationRenewalMap")) endRenewals(holder.split(" "));
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }

    /** From 3.44 on each client has a scheduler of renewals, which new lock objects go by. */
    private static void replaceScheduler(RedissonClient link) throws ReflectiveOperationException {
        Class<?> kind = found("org.redisson.renewal.LockRenewalScheduler");
        if (kind == null) return;
        Object executor = ((Redisson) link).getCommandExecutor();
        Object services = executor.getClass().getMethod("getServiceManager").invoke(executor);
        services.getClass().getMethod("register", kind).invoke(services, kind.getConstructors()[0].newInstance(executor));
    }

    /** Before 3.44 the timers of all renewals are in one map: the timers themselves, or entries that have them. */
    private static void endRenewals(String[] holder) throws ReflectiveOperationException {
        Class<?> kind = found("org.redisson." + holder[0]);
        for (Field field : kind == null ? new Field[0] : kind.getDeclaredFields()) {
            if (!field.getName().equals(holder[1])) continue;
            field.setAccessible(true);
            Map<?, ?> renewals = (Map<?, ?>) field.get(null);
            for (Object renewal : renewals.values()) {
                Object timer = renewal;
                if (!(renewal instanceof Timeout)) {
                    Method timeout = renewal.getClass().getMethod("getTimeout");
                    timeout.setAccessible(true);
                    timer = timeout.invoke(renewal);
                }
                if (timer != null) ((Timeout) timer).cancel();
            }
            renewals.clear();
        }
    }

    private static Class<?> found(String name) {
        try {
            return Class.forName(name);
        } catch (ClassNotFoundException missing) {
            return null;
        }
    }

    /** As in ../../redisson; `set`: where this release has the setting. */
    private static RedissonClient connect(JsonElement node, long lease) {
        JsonObject at = node.getAsJsonObject();
        Config config = new Config();
        config.setThreads(2).setNettyThreads(2);
        config.setLockWatchdogTimeout(lease);
        SingleServerConfig server = config.useSingleServer();
        server.setAddress("redis://" + at.get("host").getAsString() + ":" + at.get("port").getAsInt());
        server.setTimeout(1000).setConnectTimeout(10_000);
        server.setRetryAttempts(2).setIdleConnectionTimeout(100_000_000); // it would end idle ones with QUIT
        set(server, "setSubscriptionTimeout", 1000);
        set(server, "setPingConnectionInterval", 1000);
        set(server, "setRetryInterval", 200);
        server.setConnectionMinimumIdleSize(1);
        server.setSubscriptionConnectionMinimumIdleSize(1);
        server.setConnectionPoolSize(4);
        return Redisson.create(config);
    }

    private static void set(SingleServerConfig server, String name, int value) {
        try {
            server.getClass().getMethod(name, int.class).invoke(server, value);
        } catch (NoSuchMethodException missing) {
            // an older release
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException(error);
        }
    }
}
