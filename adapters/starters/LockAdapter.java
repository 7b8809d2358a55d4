#!/usr/bin/env -S java -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp libraries/* --source 17
// A lock library for lockstorm, through an adapter: change the five marked places to use your own.

import com.google.gson.JsonArray;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.util.Scanner;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson; // 1. your library
import org.redisson.api.RLock;
import org.redisson.config.Config;

public class LockAdapter {
    static RLock lock;

    /** 2. Its description; docs/adapters.md has all keys. */
    static void describe(JsonObject answer) {
        answer.addProperty("protocol", 1);
        answer.addProperty("name", "my lock");
        answer.addProperty("version", Redisson.class.getPackage().getImplementationVersion());
        answer.addProperty("tcp", true); // it cannot use UNIX sockets
        answer.addProperty("lease", true);
        answer.addProperty("renews", true);
        JsonArray operations = new JsonArray();
        operations.add("is_held");
        answer.add("operations", operations);
    }

    /** 3. A lock object. The proxy of the trial listens at the nodes: connect to these addresses only. */
    static void open(JsonObject request) {
        JsonObject node = request.getAsJsonArray("nodes").get(0).getAsJsonObject();
        Config config = new Config().setLockWatchdogTimeout(request.get("lease_ms").getAsLong());
        config.useSingleServer().setTimeout(1000) // its defaults: 3 s for an answer, 24 connections
            .setConnectionMinimumIdleSize(1)
            .setAddress("redis://" + node.get("host").getAsString() + ":" + node.get("port").getAsInt());
        lock = Redisson.create(config).getLock(request.get("resource").getAsString());
    }

    /** 4. One request: true it succeeded, false it was refused. The loop below handles exceptions. */
    static boolean answered(JsonObject request) throws Exception {
        switch (request.get("op").getAsString()) {
            case "acquire":
                if (!request.get("wait_ms").isJsonNull())
                    return lock.tryLock(request.get("wait_ms").getAsLong(), TimeUnit.MILLISECONDS);
                lock.lock(); // for as long as the library waits by default
                return true;
            case "release":
                lock.unlock();
                return true;
            default:
                return lock.isHeldByCurrentThread();
        }
    }

    public static void main(String[] arguments) {
        for (Scanner input = new Scanner(System.in, "UTF-8"); input.hasNextLine();) {
            JsonObject request = JsonParser.parseString(input.nextLine()).getAsJsonObject(), answer = new JsonObject();
            String verb = request.get("op").getAsString(), outcome = "ok";
            answer.add("id", request.get("id"));
            try {
                if (verb.equals("hello")) describe(answer);
                else if (verb.equals("open")) open(request);
                else if (!answered(request)) outcome = "refused";
            } catch (IllegalMonitorStateException error) { // 5. what your library throws if another holds the lock
                outcome = "refused";
            } catch (Exception error) { // any other error: the server may have executed it
                outcome = "unknown";
                answer.addProperty("error", String.valueOf(error.getMessage()));
            }
            answer.addProperty("outcome", outcome);
            System.out.println(answer);
        }
        System.exit(0); // ends the threads of the library, too
    }
}
