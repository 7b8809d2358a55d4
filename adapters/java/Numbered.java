import com.google.gson.JsonObject;
import java.util.Collection;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Function;

/** The lock objects, by number. Each is made at its first use, and belongs to one resource. */
final class Numbered<T> {
    private record Made<T>(String resource, T object) {}

    private final Map<Long, Made<T>> objects = new ConcurrentHashMap<>();
    private final Function<String, T> maker;
    private volatile String resource;

    Numbered(Function<String, T> maker) {
        this.maker = maker;
    }

    /** Sets the resource of requests that name none. */
    void open(String name) {
        resource = name;
    }

    String resource(JsonObject request) {
        return Lines.text(request, "resource", resource);
    }

    T of(JsonObject request) {
        long number = Lines.number(request, "lock", 1);
        Made<T> made = objects.computeIfAbsent(number, n -> new Made<>(resource(request), maker.apply(resource(request))));
        if (request.has("resource") && !made.resource.equals(resource(request)))
            throw new Lines.Unasked("lock " + number + " was made for " + made.resource);
        return made.object;
    }

    Collection<T> all() {
        return objects.values().stream().map(Made::object).toList();
    }

    void clear() {
        objects.clear();
    }
}
