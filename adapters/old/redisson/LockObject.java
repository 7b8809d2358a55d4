import java.util.List;
import org.redisson.RedissonMultiLock;
import org.redisson.RedissonRedLock;
import org.redisson.api.RLock;
import org.redisson.api.RReadWriteLock;
import org.redisson.api.RedissonClient;

/** The LockObject of ../../redisson for releases from 3.8 to 3.52. Before 3.11 the locks that have parts are no RLock. */
record LockObject(String resource, RLock usual, RLock read, List<RLock> parts, List<RedissonClient> links) {
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
            case "SpinLock", "FencedLock" -> named("get" + kind, link, resource);
            case "WriteLock", "ReadWriteLock" -> both.writeLock();
            case "MultiLock" -> (RLock) (Object) new RedissonMultiLock(parts.toArray(RLock[]::new));
            case "RedLock" -> (RLock) (Object) new RedissonRedLock(parts.toArray(RLock[]::new));
            default -> link.getLock(resource);
        };
        return new LockObject(resource, usual, kind.equals("ReadWriteLock") ? both.readLock() : null, parts, links);
    }

    private static RLock named(String method, RedissonClient link, String resource) {
        try {
            return (RLock) RedissonClient.class.getMethod(method, String.class).invoke(link, resource);
        } catch (ReflectiveOperationException error) {
            throw new IllegalStateException("this release has no " + method, error);
        }
    }

    RLock in(String mode) {
        if (!mode.equals("read")) return usual;
        if (read == null) throw new Lines.Unasked("it has no mode read");
        return read;
    }

    void forget() {
        // Links.renewWatchdogs ends all renewals
    }
}
