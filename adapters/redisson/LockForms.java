import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.redisson.api.RLock;

/** The overloads of RLock. Those that end in Async are given the id of the thread that calls them. */
final class LockForms {
    static final String USUAL = "lockInterruptibly(lease, MILLISECONDS)"; // which can be cancelled
    static final String USUAL_LIMITED = "tryLock(wait, lease, MILLISECONDS)";
    static final List<String> FOREVER = List.of("forever"), ONCE = List.of("none"), LIMITED = List.of("none", "time");
    static final List<String> RENEWED = List.of("renewed"), EITHER = List.of("given", "renewed"); // -1: the watchdog's
    static final List<TimeUnit> UNITS = List.of(TimeUnit.MILLISECONDS, TimeUnit.SECONDS);

    static List<Form<RLock>> all() {
        List<Form<RLock>> forms = new ArrayList<>();
        TimeUnit ms = TimeUnit.MILLISECONDS;
        forms.add(new Form<>("lock()", FOREVER, RENEWED, ms, false, Form.grants((lock, ask) -> lock.lock())));
        forms.add(new Form<>("lockInterruptibly()", FOREVER, RENEWED, ms, true,
            Form.grants((lock, ask) -> lock.lockInterruptibly())));
        forms.add(new Form<>("tryLock()", ONCE, RENEWED, ms, false, (lock, ask) -> lock.tryLock()));
        forms.add(new Form<>("lockAsync(threadId)", FOREVER, RENEWED, ms, true,
            Form.grants((lock, ask) -> await(lock.lockAsync(me())))));
        forms.add(new Form<>("tryLockAsync(threadId)", ONCE, RENEWED, ms, true,
            (lock, ask) -> await(lock.tryLockAsync(me()))));
        for (TimeUnit unit : UNITS) {
            forms.add(new Form<>("lock(lease, " + unit + ")", FOREVER, EITHER, unit, false,
                Form.grants((lock, ask) -> lock.lock(ask.leases(), unit))));
            forms.add(new Form<>("lockInterruptibly(lease, " + unit + ")", FOREVER, EITHER, unit, true,
                Form.grants((lock, ask) -> lock.lockInterruptibly(ask.leases(), unit))));
            forms.add(new Form<>("tryLock(wait, " + unit + ")", LIMITED, RENEWED, unit, true,
                (lock, ask) -> lock.tryLock(ask.waits(), unit)));
            forms.add(new Form<>("tryLock(wait, lease, " + unit + ")", LIMITED, EITHER, unit, true,
                (lock, ask) -> lock.tryLock(ask.waits(), ask.leases(), unit)));
            forms.add(new Form<>("lockAsync(lease, " + unit + ", threadId)", FOREVER, EITHER, unit, true,
                Form.grants((lock, ask) -> await(lock.lockAsync(ask.leases(), unit, me())))));
            forms.add(new Form<>("tryLockAsync(wait, lease, " + unit + ", threadId)", LIMITED, EITHER, unit, true,
                (lock, ask) -> await(lock.tryLockAsync(ask.waits(), ask.leases(), unit, me()))));
        }
        return forms;
    }

    /** The result of a future; an interrupt cancels it. */
    static <R> R await(Future<R> future) throws Exception {
        try {
            return future.get();
        } catch (InterruptedException cancelled) {
            future.cancel(true);
            throw cancelled;
        }
    }

    private static long me() {
        return Thread.currentThread().getId();
    }
}
