// What the adapter says of redsync, and how it makes a mutex: redsync takes the lease and the tries when it is made.
package main

import (
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
)

const retry, clockMonotonic = 100 * time.Millisecond, 1

// A wait is a number of tries, whose timers together may be late by one of them: timer_ms.
const failFast, withTimeout, try = "LockContext, WithFailFast", "LockContext, context.WithTimeout", "TryLockContext"

var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "redsync", "version": "4.18.1",
	"source": "redsync, mutex.go", "lease": true, "nodes": 5, "waits": "polling", "operations": ["renew"]}`,
	true: `{"protocol": 2, "operations": ["renew", "is_held"], "threads": 8, "owner": "object", "cancel": true,
	"validity": true, "lease_key": "{resource}", "of_object": ["form", "lease_ms", "wait_ms"], "timer_ms": 100, "poll_ms": 100, "forms": [
	{"form": "LockContext", "wait": ["none", "time"], "wait_unit_ms": 100, "lease": ["given"]},
	{"form": "LockContext, WithFailFast", "wait": ["none", "time"], "wait_unit_ms": 100, "lease": ["given"]},
	{"form": "LockContext, context.WithTimeout", "wait": ["time", "forever"], "lease": ["given"]},
	{"form": "TryLockContext", "wait": ["none"], "lease": ["given"]}]}`}

func init() {
	hello3 = `{"protocol": 3, "cancels": ["release", "renew"], "over": ["acquire", "release", "renew"]}`
}

// Without a form it waits as the library does; in version 2, where a question names its lock, without a limit.
func formOf(question message) any {
	if question["form"] == nil && question["wait_ms"] == nil && question["lock"] != nil {
		return withTimeout
	}
	return question["form"]
}

func newMutex(question message) *redsync.Mutex {
	lease := orElse(question["lease_ms"], settings["lease_ms"].(float64))
	options := []redsync.Option{redsync.WithExpiry(time.Duration(lease * 1e6))}
	wait, limited := question["wait_ms"].(float64)
	switch form := formOf(question); {
	case form == withTimeout: // by default it ends after 32 tries
		options = append(options, redsync.WithTries(math.MaxInt32), redsync.WithRetryDelay(retry))
	case limited && form != try:
		options = append(options, redsync.WithTries(int((wait+99)/100)+1), redsync.WithRetryDelay(retry))
	}
	options = append(options, redsync.WithFailFast(question["form"] == failFast))
	return redsync.New(pools...).NewMutex(orElse(question["resource"], settings["resource"].(string)), options...)
}
