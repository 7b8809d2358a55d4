import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.lock.LockResponse;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;

/** A lock object: a name, and a lease of its own, which is kept alive until it is lost or given up. */
final class JetcdLock {
    private static final long LIMIT_S = 5; // of a call that does not wait for the lock: the client itself has none
    private static final long TRY_MS = 1000; // etcd's lock service has no try; a single one waits for so long
    private final Client client;
    private final ByteSequence name;
    private final long leaseSeconds;
    private JetcdLease lease; // null: none
    private volatile ByteSequence key; // that was granted; null: none

    JetcdLock(Client client, String resource, long leaseSeconds) {
        this.client = client;
        this.name = ByteSequence.from(resource, StandardCharsets.UTF_8);
        this.leaseSeconds = leaseSeconds;
    }

    private static <R> R limited(CompletableFuture<R> answer) throws Exception {
        return answer.get(LIMIT_S, TimeUnit.SECONDS);
    }

    private void ready() throws Exception {
        if (lease != null && !lease.hasEnded()) return;
        JetcdLease made = new JetcdLease(limited(client.getLeaseClient().grant(leaseSeconds)).getID());
        made.keepAlive(client.getLeaseClient());
        lease = made;
    }

    /** Waits for so many ms, or, below 0, without a limit. Whether it is granted; the library gives no token. */
    boolean acquire(long waitMs) throws Exception {
        ready();
        CompletableFuture<LockResponse> asked = client.getLockClient().lock(name, lease.id());
        try {
            long limitMs = waitMs == 0 ? TRY_MS : waitMs;
            LockResponse granted = waitMs < 0 ? asked.get() : asked.get(limitMs, TimeUnit.MILLISECONDS);
            key = granted.getKey();
            return true;
        } catch (TimeoutException over) {
            giveUp();
            return false;
        } catch (Exception error) {
            giveUp();
            throw error;
        }
    }

    /** The server goes on to wait for the lock, and grants it later: only the end of the lease ends that. */
    private void giveUp() throws Exception {
        JetcdLease given = lease;
        forget();
        limited(client.getLeaseClient().revoke(given.id()));
    }

    /** False: nothing was granted. The server answers a release of a key that is gone as if all were well. */
    boolean release() throws Exception {
        ByteSequence given = key;
        if (given == null) return false;
        key = null;
        limited(client.getLockClient().unlock(given));
        return true;
    }

    /** Ends the renewal, and gives nothing back. */
    void forget() {
        if (lease != null) lease.leave();
        lease = null;
    }
}
