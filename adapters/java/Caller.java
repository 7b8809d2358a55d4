import com.google.gson.JsonObject;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import java.util.function.Supplier;

/** A thread that executes the calls that it is given, one after the other. */
final class Caller extends Thread {
    /** `ends`: an interrupt ends it. `written` gets the answer. */
    record Call(long id, boolean ends, Supplier<JsonObject> answer, Consumer<JsonObject> written) {}

    private final BlockingQueue<Call> calls = new LinkedBlockingQueue<>();
    private final Map<Long, Call> open = new HashMap<>(); // given and not answered yet, by id
    private Call running;
    private long cancelled = -1; // the id of a call that was cancelled before it began
    private boolean ending;

    Caller(long number) {
        super("thread-" + number);
        setDaemon(true);
        start();
    }

    synchronized void execute(Call call) {
        open.put(call.id, call);
        calls.add(call);
    }

    synchronized boolean has(long call) {
        return open.containsKey(call);
    }

    /** Interrupts the call, or its beginning if it is still to come; false if no interrupt ends it. */
    synchronized boolean cancel(long call) {
        if (!open.get(call).ends) return false;
        if (running != null && running.id == call) interrupt();
        else cancelled = call;
        return true;
    }

    synchronized void end() {
        ending = true;
        interrupt();
    }

    @Override
    public void run() {
        try {
            while (true) {
                Call call = calls.take();
                begin(call);
                JsonObject answer = call.answer.get();
                finish(call);
                call.written.accept(answer);
            }
        } catch (InterruptedException ended) {
            // by end(); what is still in the queue is not executed
        }
    }

    private synchronized void begin(Call call) {
        running = call;
        if (cancelled == call.id) interrupt();
    }

    private synchronized void finish(Call call) {
        open.remove(call.id);
        running = null;
        if (!ending) interrupted(); // what came too late for this call is not for the next one
    }
}
