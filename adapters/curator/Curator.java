import com.google.gson.JsonObject;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.retry.RetryNTimes;

/** Curator's locks on ZooKeeper. The argument names the class. */
public final class Curator {
    private static String kind;
    private static List<Form<InterProcessLock>> forms;
    private static Threads threads;
    private static CuratorFramework client;
    private static int permits;
    private static final Numbered<CuratorObject> OBJECTS =
        new Numbered<>(name -> CuratorObject.made(kind, client, "/" + name, permits));

    public static void main(String[] arguments) throws Exception {
        kind = arguments[0];
        forms = CuratorForms.of(kind);
        threads = new Threads(request -> Form.ends(forms, CuratorForms.name(request)));
        Lines.serve(threads, (verb, request) -> switch (verb) {
            case "hello" -> CuratorTraits.hello(request, kind, forms);
            case "open" -> open(request);
            case "cancel" -> threads.cancel(request);
            case "forget" -> forget();
            case "acquire" -> acquire(request);
            case "release" -> release(request);
            default -> status(request);
        });
    }

    /** The lease is the session. The recipes count on retries, and give up a lost connection after these. */
    private static JsonObject open(JsonObject request) throws InterruptedException {
        JsonObject at = request.get("nodes").getAsJsonArray().get(0).getAsJsonObject();
        client = CuratorFrameworkFactory.builder()
            .connectString(at.get("host").getAsString() + ":" + at.get("port").getAsInt())
            .sessionTimeoutMs(request.get("lease_ms").getAsInt()).connectionTimeoutMs(1000)
            .retryPolicy(new RetryNTimes(2, 200)).build();
        client.start();
        permits = request.get("permits").getAsInt();
        OBJECTS.open(request.get("resource").getAsString());
        if (!client.blockUntilConnected(15, TimeUnit.SECONDS)) throw new IllegalStateException("it is not connected");
        return Lines.outcome(true);
    }

    private static JsonObject forget() throws InterruptedException {
        JsonObject answer = threads.forget();
        OBJECTS.clear();
        return answer;
    }

    private static InterProcessLock lock(JsonObject request) {
        return OBJECTS.of(request).in(Lines.text(request, "mode", "exclusive"));
    }

    private static JsonObject acquire(JsonObject request) throws Exception {
        InterProcessLock lock = lock(request);
        Form.Prepared<InterProcessLock> form = Form.prepared(forms, CuratorForms.name(request), request, -1);
        return Lines.outcome(form.on(lock).equals(true));
    }

    private static JsonObject release(JsonObject request) throws Exception {
        lock(request).release();
        return Lines.outcome(true);
    }

    private static JsonObject status(JsonObject request) {
        JsonObject answer = Lines.outcome(true);
        answer.addProperty("held", CuratorObject.isHeld(lock(request)));
        return answer;
    }
}
