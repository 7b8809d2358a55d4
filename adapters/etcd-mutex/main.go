// etcd's concurrency.Mutex and Election (clientv3): the first of the keys below a prefix, each of a session's lease.
package main

import (
	"context"
	"errors"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

var settings message // the question "open"
var client *etcd.Client

const limit = 5 * time.Second // of a call that does not wait for the lock: the client itself has none

// As the library's ErrLockReleased, which releases before 3.6 do not have: they say nothing of a lock that is released.
var errReleased = errors.New("mutex: lock has already been released")

func outcome(done bool, err error) message {
	taken := errors.Is(err, concurrency.ErrLocked)
	released := err != nil && err.Error() == errReleased.Error() || errors.Is(err, concurrency.ErrSessionExpired)
	if taken || released || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

func open(question message) message {
	settings = question
	at := question["nodes"].([]any)[0].(map[string]any)["unix"].(string)
	made, err := etcd.New(etcd.Config{Endpoints: []string{"unix://" + at}, Logger: zap.NewNop()})
	client = made
	return outcome(true, err)
}

func acquire(ctx context.Context, on *lock, question message) message {
	asked, cancel := context.WithCancel(ctx)
	wait, limited := question["wait_ms"].(float64)
	if limited && wait > 0 {
		asked, cancel = context.WithTimeout(ctx, time.Duration(wait*1e6))
	} else if limited {
		asked, cancel = context.WithTimeout(ctx, limit)
	}
	defer cancel()
	err := on.ready(asked, question)
	if err == nil {
		err = on.holder.acquire(asked, limited && wait == 0)
	}
	answer := outcome(true, err)
	if wait > 0 && errors.Is(err, context.DeadlineExceeded) {
		answer["outcome"] = "refused" // its time is over
	}
	if err == nil {
		answer["token"] = on.holder.token()
	} else if ctx.Err() != nil {
		answer["cancelled"] = true
	}
	return answer
}

func perform(ctx context.Context, on *lock, question message) message {
	if question["op"] == "acquire" {
		return acquire(ctx, on, question)
	} else if on.holder == nil {
		return message{"outcome": "refused"}
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if question["op"] == "release" {
		guard.Lock()
		on.asked = nil // from here on a loss is no news
		guard.Unlock()
		return givenUp(ctx, outcome(true, on.holder.release(within)))
	}
	answer, err := client.Txn(within).If(on.holder.owns()).Commit()
	return outcome(err == nil && answer.Succeeded, err)
}
