import java.util.ArrayDeque;
import java.util.Collection;
import java.util.Deque;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;

/** A semaphore as the other locks are called: a thread keeps its leases, and gives back the latest. */
final class PermitLock implements InterProcessLock {
    private final InterProcessSemaphoreV2 semaphore;
    private final ThreadLocal<Deque<Lease>> leases = ThreadLocal.withInitial(ArrayDeque::new);

    PermitLock(InterProcessSemaphoreV2 semaphore) {
        this.semaphore = semaphore;
    }

    private boolean kept(Lease lease) {
        if (lease != null) leases.get().push(lease);
        return lease != null;
    }

    private boolean kept(Collection<Lease> some) {
        if (some != null) some.forEach(this::kept);
        return some != null;
    }

    @Override
    public void acquire() throws Exception {
        kept(semaphore.acquire());
    }

    @Override
    public boolean acquire(long time, TimeUnit unit) throws Exception {
        return kept(semaphore.acquire(time, unit));
    }

    void acquireSome() throws Exception {
        kept(semaphore.acquire(1));
    }

    boolean acquireSome(long time, TimeUnit unit) throws Exception {
        return kept(semaphore.acquire(1, time, unit));
    }

    @Override
    public void release() throws Exception {
        if (!isAcquiredInThisProcess()) throw new IllegalMonitorStateException();
        leases.get().pop().close(); // returnLease hides errors
    }

    /** By the thread that asks. */
    @Override
    public boolean isAcquiredInThisProcess() {
        return !leases.get().isEmpty();
    }
}
