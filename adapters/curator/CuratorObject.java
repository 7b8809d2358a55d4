import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessLock;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;

/** A lock object: `usual` is its lock in every mode but read. */
record CuratorObject(InterProcessLock usual, InterProcessLock read) {
    static CuratorObject made(String kind, CuratorFramework client, String path, int permits) {
        return switch (kind) {
            case "ReadWriteLock" -> both(new InterProcessReadWriteLock(client, path));
            case "SemaphoreV2" ->
                new CuratorObject(new PermitLock(new InterProcessSemaphoreV2(client, path, permits)), null);
            default -> new CuratorObject(new InterProcessMutex(client, path), null);
        };
    }

    private static CuratorObject both(InterProcessReadWriteLock lock) {
        return new CuratorObject(lock.writeLock(), lock.readLock());
    }

    InterProcessLock in(String mode) {
        if (!mode.equals("read")) return usual;
        if (read == null) throw new Lines.Unasked("it has no mode read");
        return read;
    }

    static boolean isHeld(InterProcessLock lock) {
        if (lock instanceof InterProcessMutex mutex) return mutex.isOwnedByCurrentThread();
        return lock.isAcquiredInThisProcess();
    }
}
