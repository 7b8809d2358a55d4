import com.google.gson.JsonObject;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** What has been granted and not given back, for a library that tells of losses: a notice names the hold. */
final class Holds {
    private static final Map<String, JsonObject> HELD = new ConcurrentHashMap<>();
    /** Whether notices are asked for: version 3. */
    static volatile boolean tells;

    private static String key(JsonObject request) {
        return request.get("thread") + " " + request.get("lock");
    }

    static void granted(JsonObject request) {
        if (tells) HELD.put(key(request), request);
    }

    static void released(JsonObject request) {
        HELD.remove(key(request));
    }

    static void clear() {
        HELD.clear();
    }

    /** Tells that all of them are lost. */
    static void lost() {
        for (JsonObject request : HELD.values()) {
            JsonObject notice = new JsonObject();
            notice.addProperty("notice", "lost");
            for (String name : new String[] {"thread", "lock", "resource"}) notice.add(name, request.get(name));
            System.out.println(notice);
        }
    }
}
