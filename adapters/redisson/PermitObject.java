import org.redisson.api.RPermitExpirableSemaphore;
import org.redisson.api.RSemaphore;
import org.redisson.api.RedissonClient;

/** A semaphore: either a counter, or one that names its permits. The other is null. */
record PermitObject(RSemaphore counter, RPermitExpirableSemaphore named) {
    /** Sets the number of permits, too, if nobody has done so yet. */
    static PermitObject made(RedissonClient link, boolean expires, String name, int permits) {
        PermitObject made = expires ? new PermitObject(null, link.getPermitExpirableSemaphore(name))
            : new PermitObject(link.getSemaphore(name), null);
        if (expires) made.named.trySetPermits(permits);
        else made.counter.trySetPermits(permits);
        return made;
    }
}
