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

/** Shared by the adapters of Redisson: the protocol (a line for each request and answer), and connections. */
final class Lines {
    /** The answer to a request. IllegalMonitorStateException: refused; any other exception: the outcome is unknown. */
    interface Answers {
        JsonObject answer(String verb, JsonObject request) throws Exception;
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

    /** Few threads and connections, for each client is a JVM; timeouts short enough to notice a silent server. */
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
            JsonObject request = JsonParser.parseString(line).getAsJsonObject(), answer;
            try {
                answer = answers.answer(request.get("op").getAsString(), request);
            } catch (IllegalMonitorStateException notOurs) {
                answer = outcome(false);
            } catch (Exception error) {
                answer = new JsonObject();
                answer.addProperty("outcome", "unknown");
                answer.addProperty("error", String.valueOf(error.getMessage()));
            }
            answer.add("id", request.get("id"));
            System.out.println(answer);
        }
        Runtime.getRuntime().halt(0); // ends the threads of the library, too
    }
}
