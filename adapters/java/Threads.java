import com.google.gson.JsonObject;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Predicate;
import java.util.function.Supplier;

/**
 * Who executes a request. Protocol 1: the thread that reads it. Protocol 2: the calls of a lock are executed by the thread
 * whose number they have, which is made at its first call and lives until `forget`.
 */
final class Threads {
    static final int MOST = 4; // as many as a client of the library has connections
    private static final Set<String> READERS = Set.of("hello", "open", "cancel", "forget");
    private final Map<Long, Caller> callers = new TreeMap<>();
    private final Predicate<JsonObject> interruptible;
    private boolean hosts; // threads, as protocol 2 does

    /** `interruptible`: whether the library documents that an interrupt ends this call. */
    Threads(Predicate<JsonObject> interruptible) {
        this.interruptible = interruptible;
    }

    void execute(JsonObject request, Supplier<JsonObject> answer, Consumer<JsonObject> written) {
        String verb = request.get("op").getAsString();
        if (verb.equals("hello")) hosts = request.get("protocol").getAsInt() > 1;
        if (!hosts || READERS.contains(verb)) {
            written.accept(answer.get());
            return;
        }
        boolean ends = verb.equals("acquire") && interruptible.test(request);
        callers.computeIfAbsent(Lines.number(request, "thread", 1), Caller::new)
            .execute(new Caller.Call(request.get("id").getAsLong(), ends, answer, written));
    }

    /** Interrupts the thread of a call that is under way. */
    JsonObject cancel(JsonObject request) {
        long call = request.get("call").getAsLong();
        for (Caller caller : callers.values()) {
            if (!caller.has(call)) continue;
            if (caller.cancel(call)) return Lines.outcome(true);
            throw new Lines.Unasked("the library does not promise that an interrupt ends this form");
        }
        throw new Lines.Unasked("call " + call + " is not under way");
    }

    /** Ends all threads. A thread whose call no interrupt ends stays: the answer is unknown. */
    JsonObject forget() throws InterruptedException {
        callers.values().forEach(Caller::end);
        for (Caller caller : callers.values()) {
            caller.join(1000);
            if (caller.isAlive()) throw new IllegalStateException(caller.getName() + " is in a call that no interrupt ends");
        }
        callers.clear();
        return Lines.outcome(true);
    }
}
