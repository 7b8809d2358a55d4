import com.google.gson.JsonArray;
import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;

/** What the adapters of Redisson's locks and semaphores share: questions and answers line by line, and connections. */
final class Lines {
    /** One answer to one question. An exception is an outcome that nobody knows, but for IllegalMonitorState: refused. */
    interface Answers {
        JsonObject answer(String verb, JsonObject asked) throws Exception;
    }

    static JsonObject outcome(boolean done) {
        JsonObject answer = new JsonObject();
        answer.addProperty("outcome", done ? "ok" : "refused");
        return answer;
    }

    static JsonObject hello(String name, String waits) {
        JsonObject hello = outcome(true);
        hello.addProperty("protocol", 1);
        hello.addProperty("name", "Redisson " + name);
        hello.addProperty("version", Redisson.class.getPackage().getImplementationVersion());
        hello.addProperty("source", "Redisson, org.redisson.Redisson" + name);
        hello.addProperty("tcp", true);
        hello.addProperty("waits", waits);
        return hello;
    }

    static JsonArray words(List<String> words) {
        JsonArray array = new JsonArray();
        words.forEach(array::add);
        return array;
    }

    /** A JVM for each client: few threads and connections; and a server's silence is noticed while somebody still asks. */
    static RedissonClient connect(JsonElement node, long lease) {
        JsonObject at = node.getAsJsonObject();
        Config config = new Config().setThreads(2).setNettyThreads(2).setLockWatchdogTimeout(lease);
        config.useSingleServer()
            .setAddress("redis://" + at.get("host").getAsString() + ":" + at.get("port").getAsInt())
            .setTimeout(1000).setSubscriptionTimeout(1000).setConnectTimeout(10_000).setPingConnectionInterval(1000)
            .setRetryAttempts(2).setRetryDelay(new ConstantDelay(Duration.ofMillis(200)))
            .setConnectionMinimumIdleSize(1).setSubscriptionConnectionMinimumIdleSize(1).setConnectionPoolSize(4);
        return Redisson.create(config);
    }

    static void serve(Answers answers) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = input.readLine()) != null;) {
            JsonObject asked = JsonParser.parseString(line).getAsJsonObject(), answer;
            try {
                answer = answers.answer(asked.get("op").getAsString(), asked);
            } catch (IllegalMonitorStateException notOurs) {
                answer = outcome(false);
            } catch (Exception error) {
                answer = new JsonObject();
                answer.addProperty("outcome", "unknown");
                answer.addProperty("error", String.valueOf(error.getMessage()));
            }
            answer.add("id", asked.get("id"));
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0); // its threads would go on
    }
}
