import com.google.gson.JsonObject;
import java.util.Collection;
import java.util.List;
import net.javacrumbs.shedlock.core.LockProvider;

/** The answer to hello. */
final class ShedTraits {
    /** `hosts`: in protocol 2. */
    static JsonObject hello(Store store, Collection<? extends Form<?>> forms, boolean hosts) {
        JsonObject hello = Lines.outcome(true);
        hello.addProperty("protocol", hosts ? 2 : 1);
        store.describe(hello, hosts);
        hello.addProperty("version", version());
        hello.addProperty("waits", "polling"); // by the adapter
        hello.addProperty("tcp", true);
        hello.addProperty("lease", true);
        hello.add("operations", Lines.words(List.of("renew")));
        if (!hosts) return hello;
        hello.addProperty("threads", Threads.MOST);
        hello.addProperty("owner", "object");
        hello.add("forms", Form.described(forms));
        hello.addProperty("renew_lease", true);
        hello.addProperty("lenient_release", true); // unlock() reports nothing
        return hello;
    }

    /** Which only the name of its archive says. */
    private static String version() {
        String archive = LockProvider.class.getProtectionDomain().getCodeSource().getLocation().getPath();
        return archive.replaceAll(".*shedlock-core-|\\.jar$", "");
    }
}
