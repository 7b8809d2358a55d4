import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The overloads of RSemaphore and of RPermitExpirableSemaphore that take one permit. */
final class PermitForms {
    private static final List<String> ENDLESS = List.of("endless"), GIVEN = List.of("given");

    /** The name of the form for a request that names none. */
    static String usual(boolean expires, boolean forever) {
        if (expires) return forever ? "acquire(lease, MILLISECONDS)" : "tryAcquire(wait, lease, MILLISECONDS)";
        return forever ? "acquire()" : "tryAcquire(wait)";
    }

    static List<Form<PermitObject>> counting() {
        List<Form<PermitObject>> forms = new ArrayList<>();
        TimeUnit ms = TimeUnit.MILLISECONDS;
        add(forms, "acquire()", LockForms.FOREVER, ENDLESS, ms, Form.grants((lock, ask) -> lock.counter().acquire()));
        add(forms, "acquireAsync()", LockForms.FOREVER, ENDLESS, ms,
            Form.grants((lock, ask) -> LockForms.await(lock.counter().acquireAsync())));
        add(forms, "tryAcquire()", LockForms.ONCE, ENDLESS, ms, (lock, ask) -> lock.counter().tryAcquire());
        add(forms, "tryAcquireAsync()", LockForms.ONCE, ENDLESS, ms,
            (lock, ask) -> LockForms.await(lock.counter().tryAcquireAsync()));
        add(forms, "tryAcquire(wait)", LockForms.LIMITED, ENDLESS, ms,
            (lock, ask) -> lock.counter().tryAcquire(Duration.ofMillis(ask.waits())));
        add(forms, "tryAcquireAsync(wait)", LockForms.LIMITED, ENDLESS, ms,
            (lock, ask) -> LockForms.await(lock.counter().tryAcquireAsync(Duration.ofMillis(ask.waits()))));
        for (TimeUnit unit : LockForms.UNITS)
            add(forms, "tryAcquire(wait, %s)", LockForms.LIMITED, ENDLESS, unit,
                (lock, ask) -> lock.counter().tryAcquire(ask.waits(), unit));
        return forms;
    }

    static List<Form<PermitObject>> expiring() {
        List<Form<PermitObject>> forms = new ArrayList<>();
        TimeUnit ms = TimeUnit.MILLISECONDS;
        add(forms, "acquire()", LockForms.FOREVER, ENDLESS, ms, (lock, ask) -> lock.named().acquire());
        add(forms, "acquireAsync()", LockForms.FOREVER, ENDLESS, ms,
            (lock, ask) -> LockForms.await(lock.named().acquireAsync()));
        add(forms, "tryAcquire()", LockForms.ONCE, ENDLESS, ms, (lock, ask) -> lock.named().tryAcquire());
        for (TimeUnit unit : LockForms.UNITS) {
            add(forms, "acquire(lease, %s)", LockForms.FOREVER, GIVEN, unit,
                (lock, ask) -> lock.named().acquire(ask.leases(), unit));
            add(forms, "acquireAsync(lease, %s)", LockForms.FOREVER, GIVEN, unit,
                (lock, ask) -> LockForms.await(lock.named().acquireAsync(ask.leases(), unit)));
            add(forms, "tryAcquire(wait, %s)", LockForms.LIMITED, ENDLESS, unit,
                (lock, ask) -> lock.named().tryAcquire(ask.waits(), unit));
            add(forms, "tryAcquire(wait, lease, %s)", LockForms.LIMITED, GIVEN, unit,
                (lock, ask) -> lock.named().tryAcquire(ask.waits(), ask.leases(), unit));
            add(forms, "tryAcquireAsync(wait, lease, %s)", LockForms.LIMITED, GIVEN, unit,
                (lock, ask) -> LockForms.await(lock.named().tryAcquireAsync(ask.waits(), ask.leases(), unit)));
        }
        return forms;
    }

    private static void add(List<Form<PermitObject>> forms, String name, List<String> waits, List<String> leases,
        TimeUnit unit, Form.Call<PermitObject> call) {
        boolean ends = !name.equals("tryAcquire()"); // all others declare InterruptedException, or return a future
        forms.add(new Form<>(String.format(name, unit), waits, leases, unit, ends, call));
    }
}
