import com.google.gson.JsonObject;
import java.util.List;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.support.locks.DistributedLock;

/** The answer to hello. */
final class RegistryTraits {
    private static final int IDLE_MS = 100; // a poll comes after as much

    static JsonObject hello(JsonObject request, String setup, boolean renewed, List<Form<DistributedLock>> forms) {
        boolean hosts = request.get("protocol").getAsInt() > 1;
        JsonObject hello = Lines.outcome(true);
        hello.addProperty("protocol", hosts ? 2 : 1);
        hello.addProperty("name", "RedisLockRegistry" + names(setup));
        String version = System.getenv("LOCKSTORM_LIBRARY_VERSION"); // of an old release
        hello.addProperty("version",
            version != null ? version : RedisLockRegistry.class.getPackage().getImplementationVersion());
        hello.addProperty("source", "Spring Integration, RedisLockRegistry.java");
        hello.addProperty("waits", setup.equals("publish") ? "push" : "polling");
        List.of("tcp", "lease", "reentrant").forEach(trait -> hello.addProperty(trait, true));
        hello.addProperty("renews", renewed);
        hello.add("operations", Lines.words(renewed ? List.of() : List.of("renew")));
        if (hosts) calls(hello, forms, renewed);
        return hello;
    }

    private static String names(String setup) {
        return switch (setup) {
            case "publish" -> " with PUB_SUB_LOCK";
            case "expire" -> " with expireUnusedOlderThan";
            case "renew" -> " with a renewalTaskScheduler";
            default -> "";
        };
    }

    private static void calls(JsonObject hello, List<Form<DistributedLock>> forms, boolean renewed) {
        hello.addProperty("threads", Threads.MOST);
        hello.addProperty("owner", "thread");
        hello.add("forms", Form.described(forms));
        hello.add("reenters", Lines.words(List.of("same")));
        hello.addProperty("cancel", true);
        hello.addProperty("renew_lease", !renewed);
        hello.addProperty("lease_key", Registries.PREFIX + ":{resource}");
        hello.addProperty("timer_ms", IDLE_MS);
    }
}
