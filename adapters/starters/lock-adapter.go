// A lock library for lockstorm: change the five marked places. lines.go beside it speaks the protocol.
package main

import (
	"context"
	"errors"
	"maps"
	"time"

	"github.com/go-redsync/redsync/v4" // 1. your library
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

// 2. Its description; docs/adapters.md has all keys. Version 2 adds calls of several goroutines about several objects,
// version 3 those that fail.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "my lock", "lease": true, "nodes": 3,
	"operations": ["renew"]}`,
	true: `{"protocol": 2, "threads": 8, "owner": "object", "cancel": true, "lease_key": "{resource}", "timer_ms": 50,
	"of_object": ["lease_ms", "wait_ms"], "forms": [
	{"form": "LockContext", "wait": ["none", "time"], "wait_unit_ms": 50, "lease": ["given"]}]}`}

func init() {
	hello3 = `{"protocol": 3, "cancels": ["release", "renew"], "over": ["acquire", "release", "renew"]}`
}

var opened, pools = message{}, []redis.Pool{}

// 3. Connections, and a lock object. The proxy of the trial listens at the nodes: connect to these addresses only.
func open(question message) message {
	opened = question
	for _, node := range question["nodes"].([]any) {
		options := client.Options{Network: "unix", Addr: node.(map[string]any)["unix"].(string), ReadTimeout: time.Second}
		options.MaxRetries = -1 // by default go-redis sends a command whose answer was lost again
		pools = append(pools, goredis.NewPool(client.NewClient(&options)))
	}
	return message{"outcome": "ok"}
}

type lock struct{ mutex *redsync.Mutex }

func made(question message) *redsync.Mutex {
	asked := maps.Clone(opened)
	maps.Copy(asked, question)
	options := []redsync.Option{redsync.WithExpiry(time.Duration(asked["lease_ms"].(float64)) * time.Millisecond)}
	if wait, limited := asked["wait_ms"].(float64); limited { // null: the default of the library
		options = append(options, redsync.WithTries(1+int(wait+49)/50), redsync.WithRetryDelay(50*time.Millisecond))
	}
	return redsync.New(pools...).NewMutex(asked["resource"].(string), options...)
}

// 4. One call of a lock object. ctx ends when the call is cancelled.
func perform(ctx context.Context, on *lock, question message) message {
	guard.Lock()
	if on.mutex == nil || question["op"] == "acquire" && question["lock"] == nil { // version 1: a new one for each
		on.mutex = made(question)
	}
	guard.Unlock()
	others := map[any]func(context.Context) (bool, error){"release": on.mutex.UnlockContext, "renew": on.mutex.ExtendContext}
	if other, found := others[question["op"]]; found {
		return givenUp(ctx, outcome(other(ctx)))
	}
	given := outcome(true, on.mutex.LockContext(ctx))
	if given["outcome"] != "ok" && ctx.Err() != nil {
		given["cancelled"] = true // it may be unknown all the same: an answer that did not come in time
	}
	return given
}

// 5. What your library returns if another holds the lock. After any other error the server may have executed it.
func outcome(done bool, err error) message {
	taken, extend := new(redsync.ErrTaken), errors.Is(err, redsync.ErrExtendFailed)
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || extend || err == nil && !done {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}
