import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.StreamSupport;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.command.CommandAsyncExecutor;
import org.redisson.config.BaseConfig;
import org.redisson.config.BaseMasterSlaveServersConfig;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;
import org.redisson.config.ReadMode;
import org.redisson.config.SubscriptionMode;
import org.redisson.renewal.LockRenewalScheduler;

/** The connections, one client of the library for each server, or topology of servers, and lease, which live until the program ends. */
final class Links {
    private static final Map<String, RedissonClient> OPENED = new ConcurrentHashMap<>();

    /** What the servers are together: single, sentinel or cluster. */
    static String topology = "single";

    /** The clients of an open request: one of each node, in its order, or one of all. */
    static List<RedissonClient> of(JsonObject open) {
        List<String> nodes = StreamSupport.stream(open.get("nodes").getAsJsonArray().spliterator(), false)
            .map(node -> address(node.getAsJsonObject())).toList();
        List<List<String>> clients = topology.equals("single") ? nodes.stream().map(List::of).toList() : List.of(nodes);
        long lease = open.get("lease_ms").getAsLong();
        return clients.stream()
            .map(each -> OPENED.computeIfAbsent(each + " " + lease, made -> connect(open, each, lease))).toList();
    }

    private static String address(JsonObject node) {
        return "redis://" + node.get("host").getAsString() + ":" + node.get("port").getAsInt();
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

    /** Few threads and connections, for each client is a JVM. */
    private static RedissonClient connect(JsonObject open, List<String> nodes, long lease) {
        Config config = new Config().setThreads(2).setNettyThreads(2).setLockWatchdogTimeout(lease);
        switch (topology) {
            case "cluster" -> few(config.useClusterServers()).setNodeAddresses(nodes);
            case "sentinel" -> few(config.useSentinelServers()).setMasterName(open.get("master").getAsString())
                .setSentinelAddresses(nodes);
            default -> limited(config.useSingleServer()).setAddress(nodes.get(0)).setConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        }
        return Redisson.create(config);
    }

    /** Timeouts short enough to notice a silent server. */
    private static <C extends BaseConfig<C>> C limited(C config) {
        return config.setTimeout(1000).setSubscriptionTimeout(1000).setConnectTimeout(10_000)
            .setPingConnectionInterval(1000).setRetryAttempts(2)
            .setRetryDelay(new ConstantDelay(Duration.ofMillis(200)));
    }

    private static <C extends BaseMasterSlaveServersConfig<C>> C few(C config) {
        return limited(config).setReadMode(ReadMode.MASTER).setSubscriptionMode(SubscriptionMode.MASTER)
            .setMasterConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1)
            .setMasterConnectionPoolSize(4);
    }
}
