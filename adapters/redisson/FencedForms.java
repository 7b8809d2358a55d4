import java.util.List;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RFencedLock;
import org.redisson.api.RLock;

/** The overloads of RFencedLock that return a token. The lock is one. */
final class FencedForms {
    static final String USUAL = "tryLockAndGetToken(wait, lease, MILLISECONDS)";

    /** These and those of RLock. */
    static List<Form<RLock>> all() {
        List<Form<RLock>> forms = LockForms.all();
        List<String> forever = LockForms.FOREVER, once = LockForms.ONCE, limited = LockForms.LIMITED;
        List<String> renewed = LockForms.RENEWED, either = LockForms.EITHER;
        add(forms, "lockAndGetToken()", forever, renewed, (lock, ask) -> lock.lockAndGetToken());
        add(forms, "tryLockAndGetToken()", once, renewed, (lock, ask) -> lock.tryLockAndGetToken());
        for (TimeUnit unit : LockForms.UNITS) {
            add(forms, "lockAndGetToken(lease, %s)", forever, either, unit,
                (lock, ask) -> lock.lockAndGetToken(ask.leases(), unit));
            add(forms, "tryLockAndGetToken(wait, %s)", limited, renewed, unit,
                (lock, ask) -> lock.tryLockAndGetToken(ask.waits(), unit));
            add(forms, "tryLockAndGetToken(wait, lease, %s)", limited, either, unit,
                (lock, ask) -> lock.tryLockAndGetToken(ask.waits(), ask.leases(), unit));
        }
        return forms;
    }

    private static void add(List<Form<RLock>> forms, String name, List<String> waits, List<String> leases,
        Form.Call<RFencedLock> call) {
        add(forms, name, waits, leases, TimeUnit.MILLISECONDS, call);
    }

    private static void add(List<Form<RLock>> forms, String name, List<String> waits, List<String> leases, TimeUnit unit,
        Form.Call<RFencedLock> call) {
        forms.add(new Form<>(String.format(name, unit), waits, leases, unit, false,
            (lock, ask) -> call.on((RFencedLock) lock, ask)));
    }
}
