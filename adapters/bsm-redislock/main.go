// bsm/redislock: SET NX PX in a script, with a random value that scripts compare; tries again at a fixed interval.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

const retry = 50 * time.Millisecond
const once, again = "Obtain", "Obtain, LinearBackoff"

var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "bsm/redislock", "version": "0.9.4",
	"source": "bsm/redislock, redislock.go", "lease": true, "waits": "polling", "operations": ["renew"]}`,
	true: `{"protocol": 2, "operations": ["renew", "is_held"], "threads": 8, "owner": "object", "cancel": true,
	"lease_key": "{resource}", "renew_lease": true, "timer_ms": 2, "forms": [
	{"form": "Obtain", "wait": ["none"], "lease": ["given"]},
	{"form": "Obtain, LinearBackoff", "wait": ["time", "forever"], "lease": ["given"]}]}`}

var settings message // the question "open"
var locker *redislock.Client

type lock struct{ held *redislock.Lock }

func hello(question message) (given message) {
	json.Unmarshal([]byte(hellos[false]), &given)
	json.Unmarshal([]byte(hellos[question["protocol"].(float64) > 1]), &given)
	return given
}

func orElse[T any](given any, otherwise T) T {
	if value, found := given.(T); found {
		return value
	}
	return otherwise
}

func outcome(done bool, err error) message {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

func open(question message) message {
	settings = question
	at := question["nodes"].([]any)[0].(map[string]any)["unix"].(string)
	options := redis.Options{Network: "unix", Addr: at, MaxRetries: -1, ReadTimeout: time.Second}
	locker = redislock.New(redis.NewClient(&options))
	return message{"outcome": "ok"}
}

func lease(question message) time.Duration {
	return time.Duration(orElse(question["lease_ms"], settings["lease_ms"].(float64)) * 1e6)
}

func acquire(ctx context.Context, on *lock, question message) message {
	asked, options := ctx, &redislock.Options{}
	wait, limited := question["wait_ms"].(float64)
	if !limited { // without a deadline it gives up after a lease
		wait = 1e9
	}
	if wait > 0 {
		within, cancel := context.WithTimeout(ctx, time.Duration(wait*1e6))
		defer cancel()
		asked, options.RetryStrategy = within, redislock.LinearBackoff(retry)
	}
	held, err := locker.Obtain(asked, orElse(question["resource"], settings["resource"].(string)), lease(question), options)
	answer := outcome(true, err)
	if err == nil {
		guard.Lock()
		on.held = held
		guard.Unlock()
	} else if ctx.Err() != nil {
		answer["outcome"], answer["cancelled"] = "refused", true
	} else if wait > 0 && errors.Is(err, context.DeadlineExceeded) {
		answer["outcome"] = "refused" // its time is over
	}
	return answer
}

func perform(ctx context.Context, on *lock, question message) message {
	if question["op"] == "acquire" {
		return acquire(ctx, on, question)
	}
	guard.Lock()
	held := on.held
	guard.Unlock()
	if held == nil {
		return message{"outcome": "refused"}
	}
	switch question["op"] {
	case "release":
		return outcome(true, held.Release(ctx))
	case "renew":
		return outcome(true, held.Refresh(ctx, lease(question), nil))
	}
	left, err := held.TTL(ctx)
	return outcome(left > 0, err)
}
