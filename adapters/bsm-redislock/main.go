// bsm/redislock: SET NX PX in a script, with a random value that scripts compare; tries again at a fixed interval.
package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

const retry = 50 * time.Millisecond

var settings message // the question "open"
var locker *redislock.Client

type lock struct{ held *redislock.Lock }

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
		answer["cancelled"] = true
		if errors.Is(err, context.Canceled) { // between two attempts; the last one was refused
			answer["outcome"] = "refused"
		}
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
		return givenUp(ctx, outcome(true, held.Release(ctx)))
	case "renew":
		return givenUp(ctx, outcome(true, held.Refresh(ctx, lease(question), nil)))
	}
	left, err := held.TTL(ctx)
	return outcome(left > 0, err)
}
