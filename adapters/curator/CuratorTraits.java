import com.google.gson.JsonObject;
import java.io.InputStream;
import java.util.Collection;
import java.util.List;
import java.util.Properties;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;

/** The answer to hello. */
final class CuratorTraits {
    /** Containers, which the server deletes after a while when they are empty. */
    private static final List<String> KEEPS = List.of("/{resource}");
    private static final List<String> PERMITS_KEEP = List.of("/{resource}", "/{resource}/locks", "/{resource}/leases");

    static JsonObject hello(JsonObject request, String kind, Collection<? extends Form<?>> forms) throws Exception {
        boolean both = kind.equals("ReadWriteLock"), permits = kind.equals("SemaphoreV2");
        JsonObject hello = Lines.outcome(true);
        boolean hosts = request.get("protocol").getAsInt() > 1;
        hello.addProperty("protocol", Math.min(3, request.get("protocol").getAsInt()));
        hello.addProperty("name", "Curator InterProcess" + kind);
        hello.addProperty("version", version());
        hello.addProperty("source", "Curator, org.apache.curator.framework.recipes.locks.InterProcess" + kind);
        hello.addProperty("service", "zookeeper");
        hello.addProperty("waits", "push");
        List.of("tcp", "lease", "renews").forEach(trait -> hello.addProperty(trait, true));
        hello.addProperty("reentrant", !permits);
        hello.addProperty("semaphore", permits);
        hello.add("operations", Lines.words(List.of("status")));
        if (!hosts) return hello;
        hello.addProperty("threads", Threads.MOST);
        hello.addProperty("owner", "thread-object");
        hello.add("modes", Lines.words(both ? List.of("read", "write") : List.of(permits ? "permits" : "exclusive")));
        hello.add("forms", Form.described(forms));
        List<String> same = permits ? List.of() : List.of("same");
        hello.add("reenters", Lines.words(both ? List.of("same", "write-read") : same));
        hello.addProperty("cancel", true);
        hello.add("keeps", Lines.words(permits ? PERMITS_KEEP : KEEPS));
        return hello;
    }

    private static String version() throws Exception {
        Properties properties = new Properties();
        String path = "/META-INF/maven/org.apache.curator/curator-recipes/pom.properties";
        try (InputStream input = InterProcessMutex.class.getResourceAsStream(path)) {
            properties.load(input);
        }
        return properties.getProperty("version");
    }
}
