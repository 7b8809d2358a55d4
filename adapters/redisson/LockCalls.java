import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** The calls of a lock. The thread that executes one is its owner. */
final class LockCalls {
    private final String kind;
    private final List<Form<RLock>> forms;
    private final Numbered<LockObject> objects;
    private final Map<String, Integer> mayHold = new ConcurrentHashMap<>(); // how many times, as far as the answers told
    private volatile long lease = -1; // of requests that name none; -1: the watchdog renews it

    LockCalls(String kind, List<Form<RLock>> forms, Numbered<LockObject> objects) {
        this.kind = kind;
        this.forms = forms;
        this.objects = objects;
    }

    void open(long leaseMs) {
        lease = leaseMs;
    }

    void clear() {
        mayHold.clear();
    }

    /** The name of the form that the request asks for, or of the usual one for its wait. */
    String form(JsonObject request) {
        String usual = Lines.number(request, "wait_ms", -1) < 0 ? LockForms.USUAL : LockForms.USUAL_LIMITED;
        return Lines.text(request, "form", kind.equals("FencedLock") ? FencedForms.USUAL : usual);
    }

    private RLock lock(JsonObject request) {
        return objects.of(request).in(Lines.text(request, "mode", "exclusive"));
    }

    private String holder(JsonObject request) {
        return Thread.currentThread().getId() + " " + objects.of(request).resource();
    }

    JsonObject acquire(JsonObject request) throws Exception {
        RLock lock = lock(request);
        long leaseMs = request.has("lease_ms") ? Lines.number(request, "lease_ms", -1) : lease;
        Form.Prepared<RLock> form = Form.prepared(forms, form(request), request, leaseMs);
        mayHold.merge(holder(request), 1, Integer::sum);
        Object granted = form.on(lock);
        if (granted == null || granted.equals(false)) {
            objects.of(request).parts().forEach(RLock::isLocked); // it is false for a silent server, too; isLocked throws
            mayHold.merge(holder(request), -1, Integer::sum);
            return Lines.outcome(false);
        }
        JsonObject answer = Lines.outcome(true);
        if (lock instanceof RFencedLock fenced)
            answer.addProperty("token", granted instanceof Long token ? token : fenced.getToken());
        return answer;
    }

    JsonObject release(JsonObject request) {
        if (kind.equals("RedLock") && mayHold.getOrDefault(holder(request), 0) == 0)
            throw new IllegalMonitorStateException(); // its unlock reports nothing
        lock(request).unlock();
        mayHold.merge(holder(request), -1, Integer::sum);
        return Lines.outcome(true);
    }

    JsonObject token(JsonObject request) {
        JsonObject answer = Lines.outcome(true);
        answer.addProperty("token", ((RFencedLock) lock(request)).getToken());
        return answer;
    }

    JsonObject isHeld(JsonObject request) {
        return Lines.outcome(lock(request).isHeldByCurrentThread());
    }
}
