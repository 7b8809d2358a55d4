// A lock for lockstorm: put yours in its place. lock-adapter beside it compiles and starts it; `lockstorm docs adapters`
// explains what Adapter has.
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import lockstorm.Adapter; // of lockstorm, which starts this program
import redis.clients.jedis.JedisPooled; // 1. your library
import redis.clients.jedis.params.SetParams;

class LockAdapter {
    static JedisPooled link;
    final String key, owner = UUID.randomUUID().toString();
    final long lease;

    LockAdapter(List<String> urls, String resource, Duration lease) {
        if (link == null) link = new JedisPooled(urls.get(0)); // 2. the server that lockstorm names, and no other
        this.key = resource;
        this.lease = lease.toMillis();
    }

    boolean acquire(Duration wait) throws InterruptedException {
        for (long until = System.nanoTime() + wait.toNanos();; Thread.sleep(50)) {
            if (link.set(key, owner, SetParams.setParams().nx().px(lease)) != null) return true;
            if (System.nanoTime() >= until) return false;
        }
    }

    boolean ifOurs(String call) {
        String script = "return redis.call('GET', KEYS[1]) == ARGV[1] and " + call + " or 0";
        return link.eval(script, List.of(key), List.of(owner, "" + lease)).equals(1L);
    }

    public static void main(String[] arguments) throws Exception {
        Adapter.make(LockAdapter::new) // 3. a lock object, and its calls
            .acquire(LockAdapter::acquire)
            .release(lock -> lock.ifOurs("redis.call('DEL', KEYS[1])"))
            .renew(lock -> lock.ifOurs("redis.call('PEXPIRE', KEYS[1], ARGV[2])"))
            // .forget(lock -> ...) for a lock that renews itself: lockstorm drops the object, and renewing it has to stop
            .hello("owner", "object") // who may release: a thread, an object, or a thread-object
            .hello("cancel", true) // an interrupt ends an acquire
            .hello("lease_key", "{resource}") // the key at the server that ends with the lease
            .serve();
    }
}
