import com.google.gson.JsonObject;
import io.etcd.jetcd.Client;
import java.util.Collection;
import java.util.List;

/** The answer to hello. */
final class JetcdTraits {
    static JsonObject hello(JsonObject request, Collection<? extends Form<?>> forms) {
        JsonObject hello = Lines.outcome(true);
        boolean hosts = request.get("protocol").getAsInt() > 1;
        hello.addProperty("protocol", hosts ? 2 : 1);
        hello.addProperty("name", "jetcd Lock");
        hello.addProperty("version", version());
        hello.addProperty("source", "jetcd, io.etcd.jetcd.Lock");
        hello.addProperty("service", "etcd");
        hello.addProperty("waits", "in-server");
        List.of("tcp", "lease", "renews").forEach(trait -> hello.addProperty(trait, true));
        hello.addProperty("lease_unit_ms", 1000);
        if (!hosts) return hello;
        hello.addProperty("threads", Threads.MOST);
        hello.addProperty("owner", "object");
        hello.add("forms", Form.described(forms));
        hello.addProperty("cancel", true);
        hello.addProperty("lenient_release", true); // a key that is gone is released as if it were there
        hello.addProperty("timer_ms", 5);
        return hello;
    }

    /** Its archive says it in its name only. */
    private static String version() {
        String archive = Client.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return archive.replaceFirst(".*/jetcd-core-", "").replaceFirst("\\.jar$", "");
    }
}
