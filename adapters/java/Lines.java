import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Collection;
import java.util.concurrent.CancellationException;

/** Shared by the adapters in Java: the protocol, a line for each request and answer. */
final class Lines {
    /** The answer to a request. IllegalMonitorStateException: refused; any other exception: the outcome is unknown. */
    interface Answers {
        JsonObject answer(String verb, JsonObject request) throws Exception;
    }

    /** A request that cannot be asked for. It is refused with this message, before the library is called. */
    static final class Unasked extends RuntimeException {
        private static final long serialVersionUID = 1;

        Unasked(String message) {
            super(message);
        }
    }

    static JsonObject outcome(boolean done) {
        JsonObject answer = new JsonObject();
        answer.addProperty("outcome", done ? "ok" : "refused");
        return answer;
    }

    static JsonArray words(Collection<String> words) {
        JsonArray array = new JsonArray();
        words.forEach(array::add);
        return array;
    }

    /** A number of the request, or `otherwise` where it is left out or null. */
    static long number(JsonObject request, String key, long otherwise) {
        JsonElement value = request.get(key);
        return value == null || value.isJsonNull() ? otherwise : value.getAsLong();
    }

    static String text(JsonObject request, String key, String otherwise) {
        return request.has(key) ? request.get(key).getAsString() : otherwise;
    }

    /** Answers each line of the input until it ends; `threads` says which thread executes it. */
    static void serve(Threads threads, Answers answers) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) {
            JsonObject request = JsonParser.parseString(line).getAsJsonObject();
            threads.execute(request, () -> answered(answers, request), System.out::println);
        }
        Runtime.getRuntime().halt(0); // ends the threads of the library, too
    }

    private static JsonObject answered(Answers answers, JsonObject request) {
        JsonObject answer;
        try {
            answer = answers.answer(request.get("op").getAsString(), request);
        } catch (IllegalMonitorStateException notOurs) {
            answer = outcome(false);
        } catch (Unasked error) {
            answer = outcome(false);
            answer.addProperty("error", error.getMessage());
        } catch (Exception error) {
            answer = new JsonObject();
            answer.addProperty("outcome", "unknown");
            answer.addProperty("error", String.valueOf(error.getMessage()));
            for (Throwable cause = error; cause != null; cause = cause.getCause())
                if (cause instanceof InterruptedException || cause instanceof CancellationException)
                    answer.addProperty("cancelled", true);
        }
        answer.add("id", request.get("id"));
        return answer;
    }
}
