import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.springframework.integration.support.locks.DistributedLock;

/** The ways to acquire a DistributedLock. Without a lease of its own, a call has that of the registry. */
final class RegistryForms {
    private static final String USUAL = "lockInterruptibly()", USUAL_LIMITED = "tryLock(wait, MILLISECONDS)";
    private static final List<String> FOREVER = List.of("forever"), ONCE = List.of("none");
    private static final List<String> LIMITED = List.of("none", "time");
    private static final List<String> GIVEN = List.of("given");

    /** `renewed`: the registry renews its leases; a lease that is given would be renewed, too, and is not asked for. */
    static List<Form<DistributedLock>> all(boolean renewed) {
        List<String> usual = List.of(renewed ? "renewed" : "default");
        List<Form<DistributedLock>> forms = new ArrayList<>();
        TimeUnit ms = TimeUnit.MILLISECONDS;
        forms.add(new Form<>("lock()", FOREVER, usual, ms, false, Form.grants((lock, ask) -> lock.lock())));
        forms.add(new Form<>(USUAL, FOREVER, usual, ms, true, Form.grants((lock, ask) -> lock.lockInterruptibly())));
        forms.add(new Form<>("tryLock()", ONCE, usual, ms, false, (lock, ask) -> lock.tryLock()));
        for (TimeUnit unit : List.of(ms, TimeUnit.SECONDS))
            forms.add(new Form<>("tryLock(wait, " + unit + ")", LIMITED, usual, unit, true,
                (lock, ask) -> lock.tryLock(ask.waits(), unit)));
        if (renewed) return forms;
        forms.add(new Form<>("lock(lease)", FOREVER, GIVEN, ms, false,
            Form.grants((lock, ask) -> lock.lock(Duration.ofMillis(ask.leases())))));
        forms.add(new Form<>("tryLock(wait, lease)", LIMITED, GIVEN, ms, true,
            (lock, ask) -> lock.tryLock(Duration.ofMillis(ask.waits()), Duration.ofMillis(ask.leases()))));
        return forms;
    }

    /** The name of the form that the request asks for, or of the usual one for its wait. */
    static String of(JsonObject request) {
        return Lines.text(request, "form", Lines.number(request, "wait_ms", -1) < 0 ? USUAL : USUAL_LIMITED);
    }
}
