import com.google.gson.JsonObject;
import net.javacrumbs.shedlock.core.LockProvider;

/** Where ShedLock keeps its locks. */
interface Store {
    void open(JsonObject node) throws Exception;

    /** A provider that knows nothing of the locks of another one. */
    LockProvider provider();

    /** Adds to the answer to hello. `hosts`: in protocol 2. */
    void describe(JsonObject hello, boolean hosts);
}
