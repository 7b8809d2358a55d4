import io.etcd.jetcd.Lease;
import io.etcd.jetcd.lease.LeaseKeepAliveResponse;
import io.etcd.jetcd.support.CloseableClient;
import io.grpc.stub.StreamObserver;

/** A lease that the client renews by itself. */
final class JetcdLease implements StreamObserver<LeaseKeepAliveResponse> {
    private final long id;
    private volatile boolean ended;
    private CloseableClient renewal;

    JetcdLease(long id) {
        this.id = id;
    }

    long id() {
        return id;
    }

    boolean hasEnded() {
        return ended;
    }

    void keepAlive(Lease leases) {
        renewal = leases.keepAlive(id, this);
    }

    /** Ends the renewal; the lease lives until its time is over. */
    void leave() {
        renewal.close();
    }

    @Override
    public void onNext(LeaseKeepAliveResponse renewed) {}

    /** After a lost connection the client goes on to renew it, unless the server says that there is no such lease. */
    @Override
    public void onError(Throwable error) {
        if (String.valueOf(error.getMessage()).contains("lease not found")) ended = true;
    }

    /** The client has heard nothing of it for as long as it lasts. */
    @Override
    public void onCompleted() {
        ended = true;
    }
}
