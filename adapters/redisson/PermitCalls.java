import com.google.gson.JsonObject;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;

/** The calls of a semaphore. A permit belongs to the thread and the object that acquired it. */
final class PermitCalls {
    private final boolean expires;
    private final List<Form<PermitObject>> forms;
    private final Numbered<PermitObject> objects;
    private final Map<String, String> granted = new ConcurrentHashMap<>(); // permits: their ids; of a counter, any text
    private volatile long lease; // of requests that name none

    PermitCalls(boolean expires, List<Form<PermitObject>> forms, Numbered<PermitObject> objects) {
        this.expires = expires;
        this.forms = forms;
        this.objects = objects;
    }

    void open(long leaseMs) {
        lease = leaseMs;
    }

    void clear() {
        granted.clear();
    }

    /** The name of the form that the request asks for, or of the usual one for its wait. */
    String form(JsonObject request) {
        return Lines.text(request, "form", PermitForms.usual(expires, Lines.number(request, "wait_ms", -1) < 0));
    }

    private static String holder(JsonObject request) {
        return Lines.number(request, "thread", 1) + " " + Lines.number(request, "lock", 1);
    }

    JsonObject acquire(JsonObject request) throws Exception {
        PermitObject semaphore = objects.of(request);
        long leaseMs = request.has("lease_ms") ? Lines.number(request, "lease_ms", -1) : lease;
        Form.Prepared<PermitObject> form = Form.prepared(forms, form(request), request, leaseMs);
        granted.remove(holder(request));
        Object permit = form.on(semaphore);
        if (permit == null || permit.equals(false)) return Lines.outcome(false);
        granted.put(holder(request), permit.toString());
        return Lines.outcome(true);
    }

    JsonObject renew(JsonObject request) {
        String permit = granted.get(holder(request));
        long leaseMs = Lines.number(request, "lease_ms", lease);
        return Lines.outcome(permit != null && objects.of(request).named().updateLeaseTime(permit, leaseMs, TimeUnit.MILLISECONDS));
    }

    /** A counter accepts a release without a permit, so this checks for one. An expired permit is gone. */
    JsonObject release(JsonObject request) {
        String permit = granted.get(holder(request));
        if (permit == null) return Lines.outcome(false);
        if (expires) return Lines.outcome(objects.of(request).named().tryRelease(permit));
        objects.of(request).counter().release();
        granted.remove(holder(request));
        return Lines.outcome(true);
    }
}
