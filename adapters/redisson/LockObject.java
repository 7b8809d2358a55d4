import java.util.List;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;
import org.redisson.renewal.LockRenewalScheduler;

/** A lock object: `usual` is its lock in every mode but read; `parts`: of a lock that consists of others. */
record LockObject(String resource, RLock usual, RLock read, List<RLock> parts, List<RedissonClient> links) {
    /** `kind` names the class; `links` are the clients of the servers that it needs. */
    static LockObject made(String kind, List<RedissonClient> links, String resource) {
        RedissonClient link = links.get(0);
        List<RLock> parts = switch (kind) {
            case "RedLock" -> links.stream().map(each -> each.getLock(resource)).toList();
            case "MultiLock" -> List.of(1, 2, 3).stream().map(part -> link.getLock(resource + ":" + part)).toList();
            default -> List.of();
        };
        RReadWriteLock both = link.getReadWriteLock(resource);
        RLock usual = switch (kind) {
            case "FairLock" -> link.getFairLock(resource);
            case "SpinLock" -> link.getSpinLock(resource);
            case "FencedLock" -> link.getFencedLock(resource);
            case "WriteLock", "ReadWriteLock" -> both.writeLock();
            case "MultiLock" -> link.getMultiLock(parts.toArray(RLock[]::new));
            case "RedLock" -> link.getRedLock(parts.toArray(RLock[]::new));
            default -> link.getLock(resource);
        };
        return new LockObject(resource, usual, kind.equals("ReadWriteLock") ? both.readLock() : null, parts, links);
    }

    RLock in(String mode) {
        if (!mode.equals("read")) return usual;
        if (read == null) throw new Lines.Unasked("it has no mode read");
        return read;
    }

    /** Ends the library's renewals of it, whichever thread holds it, without asking a server. */
    void forget() {
        List<String> names = parts.isEmpty() ? List.of(resource) : parts.stream().map(RLock::getName).toList();
        for (RedissonClient link : links) {
            LockRenewalScheduler renewals = Links.renewals(link);
            names.forEach(name -> renewals.cancelLockRenewal(name, null));
            names.forEach(name -> renewals.cancelReadLockRenewal(name, null));
        }
    }
}
