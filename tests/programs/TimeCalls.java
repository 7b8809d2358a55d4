import java.io.InputStream;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.channels.Selector;
import java.time.Duration;
import java.time.Instant;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.locks.*;

/** The ways of Java to wait and to tell the time; prints when each ended. Runs under the supervisor. */
public final class TimeCalls {
    private static final long BEGAN = System.nanoTime();

    private static void show(String step, Object result) {
        long now = System.nanoTime() - BEGAN;
        System.out.printf("%d.%09d %s %s%n", now / 1_000_000_000, now % 1_000_000_000, step, result);
    }

    private static void monitors(ScheduledExecutorService later) throws Exception {
        Object monitor = new Object();
        synchronized (monitor) {
            monitor.wait(5000);
        }
        show("Object.wait", "");
        later.schedule(() -> {
            synchronized (monitor) {
                monitor.notify();
            }
        }, 2, TimeUnit.SECONDS);
        synchronized (monitor) {
            monitor.wait(60000);
        }
        show("Object.wait, notified", "");
        Thread sleeper = new Thread(() -> {
            try {
                Thread.sleep(1000000);
            } catch (InterruptedException interrupted) {
                show("Thread.sleep", "interrupted");
            }
        });
        sleeper.start();
        sleeper.join(3000);
        show("Thread.join", sleeper.isAlive());
        sleeper.interrupt();
        sleeper.join();
    }

    private static void locks(ScheduledExecutorService later) throws Exception {
        LockSupport.parkNanos(3_000_000_001L);
        show("parkNanos", "");
        Thread self = Thread.currentThread();
        later.schedule(() -> LockSupport.unpark(self), 1, TimeUnit.SECONDS);
        LockSupport.parkUntil(System.currentTimeMillis() + 60000);
        show("parkUntil, unparked", "");
        show("tryAcquire", new Semaphore(0).tryAcquire(6, TimeUnit.SECONDS));
        ReentrantLock lock = new ReentrantLock();
        lock.lock();
        show("await", lock.newCondition().await(2500, TimeUnit.MILLISECONDS));
        show("CountDownLatch", new CountDownLatch(1).await(1, TimeUnit.SECONDS));
        show("poll", new LinkedBlockingQueue<String>().poll(750, TimeUnit.MILLISECONDS));
    }

    private static void futures(ScheduledExecutorService later) throws Exception {
        show("schedule", later.schedule(() -> 7, 7, TimeUnit.SECONDS).get());
        try {
            new CompletableFuture<String>().get(9, TimeUnit.SECONDS);
        } catch (TimeoutException late) {
            show("CompletableFuture.get", "late");
        }
        show("completeOnTimeout", new CompletableFuture<String>().completeOnTimeout("x", 4, TimeUnit.SECONDS).get());
        CountDownLatch ticks = new CountDownLatch(5);
        ScheduledFuture<?> every = later.scheduleAtFixedRate(ticks::countDown, 1, 2, TimeUnit.SECONDS);
        ticks.await();
        every.cancel(false);
        show("scheduleAtFixedRate", ticks.getCount());
        CountDownLatch fired = new CountDownLatch(1);
        Timer timer = new Timer();
        timer.schedule(new TimerTask() {
            @Override public void run() {
                fired.countDown();
            }
        }, 5000);
        fired.await();
        timer.cancel();
        show("Timer", "");
    }

    private static void channels(ScheduledExecutorService later) throws Exception {
        Selector selector = Selector.open();
        show("select", selector.select(11000));
        later.schedule(selector::wakeup, 4, TimeUnit.SECONDS);
        show("select, woken", selector.select(50000));
        ServerSocket server = new ServerSocket(0, 1, InetAddress.getLoopbackAddress());
        Socket socket = new Socket(server.getInetAddress(), server.getLocalPort());
        socket.setSoTimeout(8000);
        try {
            socket.getInputStream().read();
        } catch (SocketTimeoutException late) {
            show("SO_TIMEOUT", "late");
        }
        server.setSoTimeout(1000);
        server.accept();
        try {
            server.accept();
        } catch (SocketTimeoutException late) {
            show("accept", "late");
        }
        Process process = new ProcessBuilder("sleep", "20").start();
        show("Process.waitFor", process.waitFor(3, TimeUnit.SECONDS));
        show("Process.waitFor", process.waitFor());
    }

    public static void main(String[] arguments) throws Exception {
        ScheduledExecutorService later = Executors.newScheduledThreadPool(2);
        System.out.println(Instant.now() + " " + System.currentTimeMillis() + " " + System.nanoTime());
        show("start", "");
        Thread.sleep(30000);
        show("Thread.sleep", "");
        monitors(later);
        locks(later);
        futures(later);
        channels(later);
        later.shutdown();
        show("awaitTermination", later.awaitTermination(60, TimeUnit.SECONDS));
    }
}
