import com.google.gson.JsonObject;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.recipes.locks.InterProcessLock;

/** The overloads of InterProcessLock, and those of InterProcessSemaphoreV2. An interrupt ends all of them. */
final class CuratorForms {
    private static final String USUAL = "acquire()", USUAL_LIMITED = "acquire(time, MILLISECONDS)";
    private static final List<String> FOREVER = List.of("forever"), LIMITED = List.of("none", "time");
    private static final List<String> RENEWED = List.of("renewed"); // for as long as the session lives
    private static final List<TimeUnit> UNITS = List.of(TimeUnit.MILLISECONDS, TimeUnit.SECONDS);

    static List<Form<InterProcessLock>> of(String kind) {
        List<Form<InterProcessLock>> forms = new ArrayList<>();
        forms.add(new Form<>(USUAL, FOREVER, RENEWED, TimeUnit.MILLISECONDS, true,
            Form.grants((lock, ask) -> lock.acquire())));
        for (TimeUnit unit : UNITS)
            forms.add(new Form<>("acquire(time, " + unit + ")", LIMITED, RENEWED, unit, true,
                (lock, ask) -> lock.acquire(ask.waits(), unit)));
        if (kind.equals("SemaphoreV2")) {
            forms.add(new Form<>("acquire(qty)", FOREVER, RENEWED, TimeUnit.MILLISECONDS, true,
                Form.grants((lock, ask) -> ((PermitLock) lock).acquireSome())));
            forms.add(new Form<>("acquire(qty, time, MILLISECONDS)", LIMITED, RENEWED, TimeUnit.MILLISECONDS, true,
                (lock, ask) -> ((PermitLock) lock).acquireSome(ask.waits(), TimeUnit.MILLISECONDS)));
        }
        return forms;
    }

    /** The name of the form that the request asks for, or of the usual one for its wait. */
    static String name(JsonObject request) {
        return Lines.text(request, "form", Lines.number(request, "wait_ms", -1) < 0 ? USUAL : USUAL_LIMITED);
    }
}
