import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import java.util.Collection;
import java.util.List;
import java.util.concurrent.TimeUnit;

/**
 * One way to acquire a lock of type L: an overload of the library, by its own name. `waits` and `leases` are those that it
 * can be asked for, as hello names them; the lease is in `unit`, the wait, too. `ends`: an interrupt ends it.
 */
record Form<L>(String name, List<String> waits, List<String> leases, TimeUnit unit, boolean ends, Call<L> call) {
    /** Of the library: false or null where it did not grant, else true, a token or the id of a permit. */
    interface Call<L> {
        Object on(L lock, Ask ask) throws Exception;
    }

    /** What one call asks for, in the unit of its form. -1: no limit for the wait, no lease. */
    record Ask(long waits, long leases, TimeUnit unit) {}

    /** A call that returns nothing: it grants, or throws. */
    interface Grant<L> {
        void on(L lock, Ask ask) throws Exception;
    }

    static <L> Call<L> grants(Grant<L> grant) {
        return (lock, ask) -> {
            grant.on(lock, ask);
            return true;
        };
    }

    /** A form with its arguments. */
    interface Prepared<L> {
        Object on(L lock) throws Exception;
    }

    /** The form of this name with the wait of the request and this lease; -1: none. What the form has not is not asked. */
    static <L> Prepared<L> prepared(List<Form<L>> forms, String name, JsonObject request, long leaseMs) {
        Form<L> form = forms.stream().filter(each -> each.name.equals(name)).findFirst()
            .orElseThrow(() -> new Lines.Unasked("there is no form " + name));
        long waitMs = Lines.number(request, "wait_ms", -1);
        if (request.has("form")) form.check(waitMs < 0 ? "forever" : waitMs == 0 ? "none" : "time", leaseMs >= 0);
        if (leaseMs > 0 && leaseMs % form.unit.toMillis(1) != 0)
            throw new Lines.Unasked(name + ": its leases are whole " + form.unit);
        return lock -> form.call.on(lock, new Ask(form.in(waitMs), form.in(leaseMs), form.unit));
    }

    private void check(String wait, boolean given) {
        if (!waits.contains(wait)) throw new Lines.Unasked(name + " has no wait " + wait);
        if (given ? !leases.contains("given") : leases.equals(List.of("given")))
            throw new Lines.Unasked(name + (given ? " has no lease" : " needs a lease"));
    }

    /** What is less than a unit is dropped. */
    private long in(long ms) {
        return ms < 0 ? -1 : unit.convert(ms, TimeUnit.MILLISECONDS);
    }

    JsonObject described() {
        JsonObject form = new JsonObject();
        form.addProperty("form", name);
        form.add("wait", Lines.words(waits));
        form.add("lease", Lines.words(leases));
        form.addProperty("lease_unit_ms", unit.toMillis(1));
        form.addProperty("wait_unit_ms", unit.toMillis(1));
        return form;
    }

    static JsonArray described(Collection<? extends Form<?>> forms) {
        JsonArray array = new JsonArray();
        forms.forEach(form -> array.add(form.described()));
        return array;
    }

    /** Whether an interrupt ends the form of this name. */
    static <L> boolean ends(List<Form<L>> forms, String name) {
        return forms.stream().anyMatch(form -> form.ends && form.name.equals(name));
    }
}
