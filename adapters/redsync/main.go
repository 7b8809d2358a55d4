// redsync: a majority of nodes, requests in parallel, validity by Go's monotonic clock.
package main

import (
	"context"
	"errors"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

var settings message // the question "open"
var pools []redis.Pool

type lock struct{ mutex *redsync.Mutex }

// An error other than these means that nodes did not answer.
func outcome(done bool, err error) message {
	taken, extend := new(redsync.ErrTaken), errors.Is(err, redsync.ErrExtendFailed)
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || extend || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

func open(question message) message {
	settings = question
	for _, node := range question["nodes"].([]any) {
		at := node.(map[string]any)["unix"].(string)
		options := client.Options{Network: "unix", Addr: at, MaxRetries: -1, ReadTimeout: time.Second}
		pools = append(pools, goredis.NewPool(client.NewClient(&options)))
	}
	return message{"outcome": "ok"}
}

func acquire(ctx context.Context, mutex *redsync.Mutex, question message) message {
	call, asked := mutex.LockContext, ctx
	if wait, limited := question["wait_ms"].(float64); limited && question["form"] == withTimeout {
		within, cancel := context.WithTimeout(ctx, time.Duration(wait*1e6))
		defer cancel()
		asked = within
	} else if question["form"] == try {
		call = mutex.TryLockContext
	}
	answer := outcome(true, call(asked))
	if answer["outcome"] == "ok" {
		var now syscall.Timespec
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
		answer["valid_until_ms"] = float64(now.Nano()+int64(time.Until(mutex.Until()))) / 1e6
	} else if ctx.Err() != nil {
		answer["cancelled"] = true
	}
	return answer
}

func perform(ctx context.Context, on *lock, question message) message {
	guard.Lock()
	if on.mutex == nil || question["op"] == "acquire" && question["lock"] == nil { // version 1: a new one for each
		on.mutex = newMutex(question)
	}
	mutex := on.mutex
	guard.Unlock()
	switch question["op"] {
	case "release":
		return givenUp(ctx, outcome(mutex.UnlockContext(ctx)))
	case "renew":
		return givenUp(ctx, outcome(mutex.ExtendContext(ctx)))
	case "is_held":
		return outcome(mutex.Valid())
	}
	return acquire(ctx, mutex, question)
}
