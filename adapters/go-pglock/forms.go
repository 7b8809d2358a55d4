// What the adapter says of go-pglock, and how its errors are answered.
package main

import (
	"context"
	"errors"
)

// The forms that end with Close give the lock back by Close, which documents that it releases all locks of the object.
const closes = ", Close"

// timer_ms: as for bsm-redislock.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "go-pglock", "version": "3.1.0",
	"source": "go-pglock, lock.go", "service": "postgres", "tcp": true, "waits": "in-server", "operations": []}`,
	true: `{"protocol": 2, "threads": 8, "owner": "object", "cancel": true, "timer_ms": 20, "forms": [
	{"form": "Lock", "wait": ["none"], "lease": ["endless"]},
	{"form": "WaitAndLock", "wait": ["time", "forever"], "lease": ["endless"]},
	{"form": "Lock, Close", "wait": ["none"], "lease": ["endless"]},
	{"form": "WaitAndLock, Close", "wait": ["time", "forever"], "lease": ["endless"]}]}`}

func outcome(done bool, err error) message {
	if err == nil && !done {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

// An answer after an error of an acquire whose context has ended. lib/pq asks the server then to end the query.
func ended(ctx, asked context.Context, err error) message {
	answer := outcome(false, err)
	if ctx.Err() != nil {
		answer["cancelled"] = true
	} else if errors.Is(asked.Err(), context.DeadlineExceeded) {
		answer["outcome"] = "refused"
	}
	return answer
}
