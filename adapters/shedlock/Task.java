import com.google.gson.JsonObject;
import java.time.Duration;
import java.util.Optional;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;

/** A lock object: who asks for a lock by its name, and the SimpleLock that was granted last. */
final class Task {
    private final String name;
    private volatile SimpleLock granted;

    Task(String name) {
        this.name = name;
    }

    boolean lock(LockProvider provider, long leaseMs) {
        Optional<SimpleLock> lock = provider.lock(
            new LockConfiguration(ClockProvider.now(), name, Duration.ofMillis(leaseMs), Duration.ZERO));
        lock.ifPresent(each -> granted = each);
        return lock.isPresent();
    }

    /** Releases or renews it. A SimpleLock that was released or extended raises IllegalStateException. */
    JsonObject changed(String verb, long leaseMs) {
        SimpleLock lock = granted;
        try {
            return Lines.outcome(lock != null && (verb.equals("release") ? released(lock) : extended(lock, leaseMs)));
        } catch (IllegalStateException usedUp) {
            return Lines.outcome(false);
        }
    }

    private boolean released(SimpleLock lock) {
        lock.unlock();
        return true;
    }

    private boolean extended(SimpleLock lock, long leaseMs) {
        Optional<SimpleLock> next = lock.extend(Duration.ofMillis(leaseMs), Duration.ZERO);
        next.ifPresent(each -> granted = each);
        return next.isPresent();
    }
}
