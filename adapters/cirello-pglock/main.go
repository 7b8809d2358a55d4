// pglock: a row whose number its holder changes now and then; who has seen the same number for a lease takes it over.
package main

import (
	"context"
	"time"

	"cirello.io/pglock"
)

const patience = 10 * time.Second

// `end` ends the heartbeat of the lock that is held.
type lock struct {
	held *pglock.Lock
	end  context.CancelFunc
}

func init() {
	drop = func(on *lock) {
		if on.end != nil {
			on.end()
		}
	}
}

// A heartbeat goes by the context of its acquire, unless it is given one of its own.
func acquire(ctx context.Context, on *lock, question message) message {
	life, end := context.WithCancel(ctx)
	asked, options := life, []pglock.LockOption{}
	wait, limited := question["wait_ms"].(float64)
	if limited && wait == 0 {
		options = append(options, pglock.FailIfLocked())
	} else if limited {
		within, cancel := context.WithTimeout(life, time.Duration(wait*1e6))
		defer cancel()
		asked = within
	}
	if limited && wait > 0 && question["form"] != withTimeout {
		options = append(options, pglock.WithCustomHeartbeatContext(life))
	}
	held, err := client.AcquireContext(asked, orElse(question["resource"], settings["resource"].(string)), options...)
	answer := outcome(true, err)
	if err != nil {
		end()
		if ctx.Err() != nil {
			answer["cancelled"] = true
		}
		return answer
	}
	guard.Lock()
	on.held, on.end = held, end
	guard.Unlock()
	return answer
}

func perform(ctx context.Context, on *lock, question message) message {
	if question["op"] == "acquire" && question["lock"] != nil {
		return acquire(ctx, on, question)
	} else if question["op"] == "acquire" { // a query that gets no answer takes a lease, and what its driver adds
		wait := orElse(question["wait_ms"], 50_000.0)
		call := func() message { return acquire(ctx, on, question) }
		answer := within(time.Duration(wait*1e6)+patience, call, func(message) {})
		if answer == nil {
			answer = message{"outcome": "unknown", "error": "no answer in time"}
		}
		return answer
	}
	guard.Lock()
	held := on.held
	guard.Unlock()
	if question["op"] == "status" {
		return message{"outcome": "ok", "held": held != nil && !held.IsReleased()}
	} else if held == nil {
		return message{"outcome": "refused"}
	}
	return outcome(true, held.Close())
}
