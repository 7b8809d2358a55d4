import com.google.gson.JsonObject;
import io.etcd.jetcd.Client;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** jetcd's Lock client: etcd's lock service, whose key is tied to a lease. */
public final class Jetcd {
    private static final String USUAL = "lock(name, leaseId)", LIMITED = "lock(name, leaseId).get(timeout, unit)";
    private static final List<Form<JetcdLock>> FORMS = List.of(
        new Form<>(USUAL, List.of("forever"), List.of("renewed"), TimeUnit.MILLISECONDS, true,
            (lock, ask) -> lock.acquire(-1)),
        new Form<>(LIMITED, List.of("time"), List.of("renewed"), TimeUnit.MILLISECONDS, true,
            (lock, ask) -> lock.acquire(ask.waits())));
    private static Threads threads;
    private static Client client;
    private static long leaseSeconds;
    private static final Numbered<JetcdLock> OBJECTS =
        new Numbered<>(name -> new JetcdLock(client, name, leaseSeconds));

    public static void main(String[] arguments) throws Exception {
        threads = new Threads(request -> Form.ends(FORMS, form(request)));
        Lines.serve(threads, (verb, request) -> switch (verb) {
            case "hello" -> JetcdTraits.hello(request, FORMS);
            case "open" -> open(request);
            case "cancel" -> threads.cancel(request);
            case "forget" -> forget();
            case "acquire" -> acquire(request);
            default -> Lines.outcome(OBJECTS.of(request).release());
        });
    }

    private static JsonObject open(JsonObject request) {
        JsonObject at = request.get("nodes").getAsJsonArray().get(0).getAsJsonObject();
        client = Client.builder()
            .endpoints("http://" + at.get("host").getAsString() + ":" + at.get("port").getAsInt()).build();
        leaseSeconds = request.get("lease_ms").getAsLong() / 1000;
        OBJECTS.open(request.get("resource").getAsString());
        return Lines.outcome(true);
    }

    private static JsonObject forget() throws InterruptedException {
        JsonObject answer = threads.forget();
        OBJECTS.all().forEach(JetcdLock::forget);
        OBJECTS.clear();
        return answer;
    }

    /** A client of version 1 gives up what has no limit after a minute. */
    private static JsonObject acquire(JsonObject request) throws Exception {
        if (!request.has("lock") && Lines.number(request, "wait_ms", -1) < 0) request.addProperty("wait_ms", 50_000);
        return Lines.outcome(Form.prepared(FORMS, form(request), request, -1).on(OBJECTS.of(request)).equals(true));
    }

    private static String form(JsonObject request) {
        return Lines.text(request, "form", Lines.number(request, "wait_ms", -1) < 0 ? USUAL : LIMITED);
    }
}
