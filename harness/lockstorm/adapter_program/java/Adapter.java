package lockstorm;

import java.io.BufferedReader;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CancellationException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;

/**
 * A lock library behind the protocol of docs/adapters.md, from a few functions. For Java 17 and later. `run` beside it
 * compiles it together with the program that calls it.
 *
 * @param <L> a lock object
 */
public final class Adapter<L> {
    /** The wait of an acquire without a limit. */
    public static final Duration FOREVER = Duration.ofDays(36_500);

    /** Makes a lock object. `urls`: of the servers to connect to. `lease`: null is endless. */
    public interface Make<L> {
        L make(List<String> urls, String resource, Duration lease) throws Exception;
    }

    /** True, or what was granted; false: refused. `wait`: zero is one try, FOREVER is without a limit. */
    public interface Acquire<L> {
        Object acquire(L lock, Duration wait) throws Exception;
    }

    /** False: the lock is not ours. */
    public interface Call<L> {
        boolean call(L lock) throws Exception;
    }

    /** The fencing token of the hold. */
    public interface Token<L> {
        long token(L lock) throws Exception;
    }

    /** Called after a grant, unless it is nested in another one. Calls `tell` when the library says by itself that the hold is
     * lost. */
    public interface Lost<L> {
        void listen(L lock, Runnable tell) throws Exception;
    }

    private static final int NEWEST = 3; // version of the protocol
    // Keys of hello in version 1, and those that only version 3 has. All others came with version 2.
    private static final Set<String> FIRST = Set.of("name", "version", "source", "service", "lease", "token", "reentrant",
        "fair", "renews", "semaphore", "tcp", "waits", "nodes", "topology", "lease_unit_ms");
    private static final Set<String> THIRD = Set.of("cancels", "over", "loss_notice", "holds_two", "silence_ms", "settings");
    private static final Map<String, String> REFUSED = Map.of("outcome", "refused");

    private final Map<String, Object> more = new LinkedHashMap<>(); // keys of hello
    private final List<Class<? extends Exception>> refused = new ArrayList<>();
    private final Map<String, Call<L>> calls = new LinkedHashMap<>(); // release, renew, is_held
    private final Make<L> make;
    private Acquire<L> acquire;
    private Token<L> token;
    private Lost<L> lost;
    private Consumer<L> forget = lock -> {};
    private List<String> waits = List.of("none", "time", "forever");

    private Adapter(Make<L> make) {
        this.make = make;
    }

    /** How a lock object is made. */
    public static <L> Adapter<L> make(Make<L> make) {
        return new Adapter<>(make);
    }

    public Adapter<L> acquire(Acquire<L> function) {
        acquire = function;
        return this;
    }

    public Adapter<L> release(Call<L> function) {
        return also("release", function);
    }

    public Adapter<L> renew(Call<L> function) {
        return also("renew", function);
    }

    public Adapter<L> isHeld(Call<L> function) {
        return also("is_held", function);
    }

    private Adapter<L> also(String name, Call<L> function) {
        calls.put(name, function);
        return this;
    }

    /** Asked once after each grant. */
    public Adapter<L> token(Token<L> function) {
        token = function;
        return this;
    }

    public Adapter<L> lost(Lost<L> function) {
        lost = function;
        return this;
    }

    /** Ends what a lock object has started, as a renewal: lockstorm drops the object, and the program lives on. */
    public Adapter<L> forget(Consumer<L> function) {
        forget = function;
        return this;
    }

    /** An exception that says that another client holds the lock. After all others the outcome is unknown. */
    public Adapter<L> refused(Class<? extends Exception> exception) {
        refused.add(exception);
        return this;
    }

    /** The waits that acquire supports, of none, time and forever. */
    public Adapter<L> waitsFor(String... some) {
        waits = List.of(some);
        return this;
    }

    /** Another key of hello: service, nodes, renews, fair, owner, lease_key, ... `value`: a Boolean, Number, String or List. */
    public Adapter<L> hello(String key, Object value) {
        more.put(key, value);
        return this;
    }

    /** Answers lockstorm's questions until standard input ends. */
    public void serve() throws Exception {
        if (acquire == null || !calls.containsKey("release")) throw new IllegalStateException("error: acquire and release are needed");
        Program program = new Program(new PrintStream(new FileOutputStream(FileDescriptor.out), true, StandardCharsets.UTF_8));
        System.setOut(System.err); // standard output is for answers
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) program.take(new Json(line).object());
        Runtime.getRuntime().halt(0); // ends the threads of the library, too
    }

    private Map<String, Object> hello(int protocol) {
        List<String> operations = new ArrayList<>(calls.keySet());
        operations.remove("release");
        if (protocol > 1 && token != null) operations.add("token");
        Map<String, Object> said = new LinkedHashMap<>(Map.of("name", "my lock", "lease", true, "tcp", true));
        said.put("owner", "object");
        said.put("threads", more.containsKey("owner") ? 8 : 1);
        said.put("of_object", List.of("lease_ms"));
        if (lost != null) said.put("loss_notice", "lease");
        said.putAll(more);
        said.put("token", token != null);
        boolean renews = said.get("renews") == Boolean.TRUE, leases = said.get("lease") == Boolean.TRUE;
        String lease = renews ? "renewed" : leases ? "given" : "endless";
        said.putIfAbsent("forms", List.of(Map.of("form", "acquire", "wait", waits, "lease", List.of(lease))));
        said.keySet().removeIf(key -> protocol == 1 && !FIRST.contains(key) || protocol < 3 && THIRD.contains(key));
        said.put("protocol", protocol);
        said.put("operations", operations);
        return said;
    }

    private static String url(Map<?, ?> node, Object service) {
        if (node.containsKey("unix")) return "unix://" + node.get("unix");
        String place = node.get("host") + ":" + node.get("port");
        if ("etcd".equals(service)) return "http://" + place;
        if ("zookeeper".equals(service)) return place;
        if (!"postgres".equals(service)) return "redis://" + place;
        return "jdbc:postgresql://" + place + "/postgres?user=lockstorm&sslmode=disable&gssEncMode=disable";
    }

    /** A lock object, and what it was granted. */
    private final class Hold {
        final L lock;
        int held;
        Map<String, ?> token = Map.of();

        Hold(L lock) {
            this.lock = lock;
        }
    }

    /** A call that is under way; `runner` is its thread once it has begun. */
    private static final class Asked {
        final Map<String, Object> question;
        Thread runner;
        boolean isCancelled;

        Asked(Map<String, Object> question) {
            this.question = question;
            isCancelled = question.get("over") == Boolean.TRUE;
        }
    }

    /** The running program. Its own lock guards what it has, and standard output. */
    private final class Program {
        private final PrintStream out;
        private final Object making = new Object(); // held while a lock object is made, which may take time
        private final Map<Long, Hold> holds = new HashMap<>();
        private final Map<Long, BlockingQueue<Asked>> threads = new HashMap<>();
        private final Map<Object, Asked> underWay = new HashMap<>(); // by the id of the question
        private Map<String, Object> opened = Map.of();
        private List<String> urls = List.of();
        private int protocol = 1;

        Program(PrintStream out) {
            this.out = out;
        }

        synchronized void write(Map<String, Object> question, Map<String, ?> answer) {
            Map<String, Object> line = new LinkedHashMap<>(Map.of("id", question.get("id"), "outcome", "ok"));
            line.putAll(answer);
            out.println(Json.text(line));
        }

        synchronized void take(Map<String, Object> question) {
            switch ((String) question.get("op")) {
                case "hello" -> {
                    protocol = (int) Math.min(NEWEST, (Long) question.get("protocol"));
                    write(question, hello(protocol));
                }
                case "open" -> {
                    opened = question;
                    urls = ((List<?>) question.get("nodes")).stream().map(node -> url((Map<?, ?>) node, more.get("service"))).toList();
                    write(question, Map.of());
                }
                case "cancel" -> write(question, cancel(underWay.get(question.get("call"))));
                case "forget" -> write(question, forget());
                default -> begin(question);
            }
        }

        private Map<String, ?> cancel(Asked call) {
            if (call == null) return Map.of("outcome", "refused", "error", "that call is not under way");
            call.isCancelled = true;
            if (call.runner != null) call.runner.interrupt();
            return Map.of();
        }

        private Map<String, ?> forget() {
            if (!underWay.isEmpty()) return Map.of("outcome", "refused", "error", "a call is under way");
            threads.values().forEach(thread -> thread.add(new Asked(Map.of())));
            threads.clear();
            List<Hold> dropped = List.copyOf(holds.values());
            holds.clear();
            dropped.forEach(hold -> forget.accept(hold.lock));
            return Map.of();
        }

        private void begin(Map<String, Object> question) {
            Asked call = new Asked(question);
            underWay.put(question.get("id"), call);
            threads.computeIfAbsent(number(question, "thread"), this::thread).add(call);
        }

        /** A thread executes its calls one after the other, until it is forgotten. */
        private BlockingQueue<Asked> thread(long number) {
            BlockingQueue<Asked> queue = new LinkedBlockingQueue<>();
            Thread thread = new Thread(() -> execute(queue), "thread-" + number);
            thread.setDaemon(true);
            thread.start();
            return queue;
        }

        private void execute(BlockingQueue<Asked> queue) {
            try {
                for (Asked call; !(call = queue.take()).question.isEmpty();) {
                    start(call);
                    Map<String, ?> answer = answer(call);
                    finish(call, answer);
                    if (lost != null && "acquire".equals(call.question.get("op")) && !answer.containsKey("outcome")) listen(call);
                }
            } catch (Exception error) {
                error.printStackTrace();
                Runtime.getRuntime().halt(1);
            }
        }

        private synchronized void start(Asked call) {
            call.runner = Thread.currentThread();
            if (call.isCancelled) call.runner.interrupt();
        }

        private synchronized void finish(Asked call, Map<String, ?> answer) {
            Thread.interrupted(); // a cancel that came too late is not for the next call
            underWay.remove(call.question.get("id"));
            write(call.question, answer);
        }

        private Map<String, ?> answer(Asked call) {
            try {
                return perform(call.question);
            } catch (Throwable error) {
                Map<String, Object> answer = new HashMap<>(Map.of("outcome", "unknown", "error", words(error)));
                boolean isRefused = refused.stream().anyMatch(each -> each.isInstance(error));
                for (Throwable cause = error; cause != null && call.isCancelled; cause = cause.getCause())
                    if (cause instanceof InterruptedException || cause instanceof CancellationException) {
                        answer.put("cancelled", true);
                        isRefused |= "acquire".equals(call.question.get("op")); // a release may have reached the server
                    }
                if (isRefused) answer.put("outcome", "refused");
                return answer;
            }
        }

        private Map<String, ?> perform(Map<String, Object> question) throws Exception {
            Hold hold = hold(question);
            String verb = (String) question.get("op");
            if (verb.equals("acquire")) return acquired(hold, question);
            if (verb.equals("token")) return hold.token;
            if (verb.equals("release")) count(hold, -1); // a release says by itself that there was nothing to release
            return calls.get(verb).call(hold.lock) ? Map.of() : REFUSED;
        }

        private Map<String, ?> acquired(Hold hold, Map<String, Object> question) throws Exception {
            Object wait = question.get("wait_ms"), granted = acquire.acquire(hold.lock, wait == null ? FOREVER : duration(wait));
            if (granted == null)
                throw new IllegalStateException("acquire returned null: return true when the lock was granted, else false");
            if (granted == Boolean.FALSE) return REFUSED;
            if (token != null) hold.token = Map.of("token", token.token(hold.lock));
            count(hold, 1);
            return hold.token;
        }

        private synchronized int count(Hold hold, int change) {
            return hold.held = Math.max(0, hold.held + change);
        }

        /** The lock object that a question is about, which is made when it is first asked about. */
        private Hold hold(Map<String, Object> question) throws Exception {
            synchronized (making) {
                long number = number(question, "lock");
                Hold known = known(number);
                if (known != null) return known;
                Object lease = (question.containsKey("lease_ms") ? question : opened).get("lease_ms");
                Object resource = question.getOrDefault("resource", opened.get("resource"));
                Hold made = new Hold(make.make(urls, (String) resource, lease == null ? null : duration(lease)));
                synchronized (this) {
                    holds.put(number, made);
                }
                return made;
            }
        }

        private synchronized Hold known(long number) {
            return holds.get(number);
        }

        private void listen(Asked call) throws Exception {
            Hold hold = known(number(call.question, "lock"));
            if (hold != null && count(hold, 0) == 1) lost.listen(hold.lock, () -> tell(hold, call.question));
        }

        /** That what this acquire was granted is lost, if it is still held and the lock object is still there. */
        private synchronized void tell(Hold hold, Map<String, Object> question) {
            if (protocol < 3 || hold.held == 0 || holds.get(number(question, "lock")) != hold) return;
            hold.held = 0; // one notice a hold
            Map<String, Object> notice = new LinkedHashMap<>(Map.of("notice", "lost"));
            for (String key : List.of("thread", "lock", "resource"))
                if (question.containsKey(key)) notice.put(key, question.get(key));
            out.println(Json.text(notice));
        }
    }

    private static long number(Map<String, Object> question, String key) {
        return (Long) question.getOrDefault(key, 1L);
    }

    private static Duration duration(Object milliseconds) {
        return Duration.ofNanos(Math.round(((Number) milliseconds).doubleValue() * 1e6));
    }

    private static String words(Throwable error) {
        return error.getClass().getSimpleName() + ": " + error.getMessage();
    }

    /** As much of JSON as the protocol needs. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        @SuppressWarnings("unchecked")
        Map<String, Object> object() {
            return (Map<String, Object>) value();
        }

        private boolean has(char next) {
            while (Character.isWhitespace(text.charAt(at))) at++;
            if (text.charAt(at) != next) return false;
            at++;
            return true;
        }

        private Object value() {
            if (has('{')) {
                Map<String, Object> object = new LinkedHashMap<>();
                while (!has('}')) {
                    String key = (String) value();
                    has(':');
                    object.put(key, value());
                    has(',');
                }
                return object;
            }
            if (has('[')) {
                List<Object> list = new ArrayList<>();
                for (; !has(']'); has(',')) list.add(value());
                return list;
            }
            return has('"') ? string() : word();
        }

        private String string() {
            StringBuilder string = new StringBuilder();
            for (char next; (next = text.charAt(at++)) != '"';) {
                if (next == '\\') {
                    next = text.charAt(at++);
                    if (next == 'u') next = (char) Integer.parseInt(text.substring(at, at += 4), 16);
                    else if ("bfnrt".indexOf(next) >= 0) next = "\b\f\n\r\t".charAt("bfnrt".indexOf(next));
                }
                string.append(next);
            }
            return string.toString();
        }

        private Object word() {
            int from = at;
            while (at < text.length() && ",]} ".indexOf(text.charAt(at)) < 0) at++;
            String word = text.substring(from, at);
            return switch (word) {
                case "true" -> true;
                case "false" -> false;
                case "null" -> null;
                default -> word.matches("-?\\d+") ? (Object) Long.valueOf(word) : Double.valueOf(word);
            };
        }

        static String text(Object value) {
            if (value instanceof Map<?, ?> object)
                return "{" + String.join(", ", object.entrySet().stream().map(each -> text(each.getKey()) + ": " + text(each.getValue())).toList()) + "}";
            if (value instanceof Iterable<?> list) {
                List<String> texts = new ArrayList<>();
                list.forEach(each -> texts.add(text(each)));
                return "[" + String.join(", ", texts) + "]";
            }
            return value instanceof CharSequence ? quoted(value.toString()) : String.valueOf(value);
        }

        private static String quoted(String string) {
            StringBuilder quoted = new StringBuilder("\"");
            for (char each : string.toCharArray())
                if (each == '"' || each == '\\') quoted.append('\\').append(each);
                else if (each < ' ') quoted.append(String.format("\\u%04x", (int) each));
                else quoted.append(each);
            return quoted.append('"').toString();
        }
    }
}
