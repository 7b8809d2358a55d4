import java.util.List;
import java.util.stream.Stream;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMultiLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreMutex;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;

/** A lock object: `usual` is its lock in every mode but read. */
record CuratorObject(InterProcessLock usual, InterProcessLock read) {
    static CuratorObject made(String kind, CuratorFramework client, String path, int permits) {
        return switch (kind) {
            case "ReadWriteLock" -> both(new InterProcessReadWriteLock(client, path));
            case "SemaphoreV2" -> new CuratorObject(new PermitLock(new InterProcessSemaphoreV2(client, path, permits)), null);
            case "SemaphoreMutex" -> new CuratorObject(new InterProcessSemaphoreMutex(client, path), null);
            case "MultiLock" -> new CuratorObject(new InterProcessMultiLock(client, parts(path)), null);
            default -> new CuratorObject(new InterProcessMutex(client, path), null);
        };
    }

    private static CuratorObject both(InterProcessReadWriteLock lock) {
        return new CuratorObject(lock.writeLock(), lock.readLock());
    }

    private static List<String> parts(String path) {
        return Stream.of(1, 2, 3).map(part -> path + ":" + part).toList();
    }

    InterProcessLock in(String mode) {
        if (!mode.equals("read")) return usual;
        if (read == null) throw new Lines.Unasked("it has no mode read");
        return read;
    }

    static boolean isHeld(InterProcessLock lock) {
        return lock instanceof InterProcessMutex mutex ? mutex.isOwnedByCurrentThread() : lock.isAcquiredInThisProcess();
    }

    /** Of a release: IllegalMonitorStateException, which a multi lock wraps; IllegalStateException of a semaphore mutex. */
    static boolean isRefusal(Exception error) {
        Throwable cause = error;
        while (cause.getCause() != null) cause = cause.getCause();
        return cause instanceof IllegalMonitorStateException || cause instanceof IllegalStateException;
    }
}
