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

    /** 2. What it is; docs/adapters.md has all keys. */
    static void describe(JsonObject answer) {
        answer.addProperty("protocol", 1);
        answer.addProperty("name", "my lock");
        answer.addProperty("version", Redisson.class.getPackage().getImplementationVersion());
        answer.addProperty("tcp", true); // it cannot use unix sockets
        answer.addProperty("lease", true);
        answer.addProperty("renews", true);
        JsonArray operations = new JsonArray();
        operations.add("is_held");
        answer.add("operations", operations);
    }

    /** 3. A lock object. The nodes are where the trial's proxy listens: connect there and nowhere else. */
    static void open(JsonObject asked) {
        JsonObject node = asked.getAsJsonArray("nodes").get(0).getAsJsonObject();
        Config config = new Config().setLockWatchdogTimeout(asked.get("lease_ms").getAsLong());
        config.useSingleServer().setTimeout(1000) // by itself it waits 3 s for an answer, and opens 24 connections
            .setConnectionMinimumIdleSize(1)
            .setAddress("redis://" + node.get("host").getAsString() + ":" + node.get("port").getAsInt());
        lock = Redisson.create(config).getLock(asked.get("resource").getAsString());
    }

    /** 4. One question: true it is so, false it is not. An exception is for the loop below. */
    static boolean answered(JsonObject asked) throws Exception {
        switch (asked.get("op").getAsString()) {
            case "acquire":
                if (!asked.get("wait_ms").isJsonNull())
                    return lock.tryLock(asked.get("wait_ms").getAsLong(), TimeUnit.MILLISECONDS);
                lock.lock(); // as long as the library waits by itself
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
            JsonObject asked = JsonParser.parseString(input.nextLine()).getAsJsonObject(), answer = new JsonObject();
            String verb = asked.get("op").getAsString(), outcome = "ok";
            answer.add("id", asked.get("id"));
            try {
                if (verb.equals("hello")) describe(answer);
                else if (verb.equals("open")) open(asked);
                else if (!answered(asked)) outcome = "refused";
            } catch (IllegalMonitorStateException error) { // 5. what your library throws when the lock is not ours
                outcome = "refused";
            } catch (Exception error) { // whatever else goes wrong: nobody knows whether it was carried out
                outcome = "unknown";
                answer.addProperty("error", String.valueOf(error.getMessage()));
            }
            answer.addProperty("outcome", outcome);
            System.out.println(answer);
        }
        System.exit(0); // the library's threads would go on
    }
}
