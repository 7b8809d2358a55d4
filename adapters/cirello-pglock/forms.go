// What the adapter says of pglock, and how its errors are answered.
package main

import (
	"errors"

	"cirello.io/pglock"
)

const withTimeout = "AcquireContext, context.WithTimeout"

// timer_ms: as for bsm-redislock.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "cirello.io/pglock", "version": "1.16.1",
	"source": "cirello.io/pglock, client.go", "service": "postgres", "tcp": true, "lease": true, "renews": true,
	"waits": "polling", "operations": ["status"]}`,
	true: `{"protocol": 2, "threads": 8, "owner": "object", "cancel": true, "watchdog_divisor": 4, "timer_ms": 20, "forms": [
	{"form": "AcquireContext", "wait": ["forever"], "lease": ["renewed"]},
	{"form": "AcquireContext, FailIfLocked", "wait": ["none"], "lease": ["renewed"]},
	{"form": "AcquireContext, context.WithTimeout", "wait": ["time"], "lease": ["default"]},
	{"form": "AcquireContext, WithCustomHeartbeatContext", "wait": ["time"], "lease": ["renewed"]}]}`}

func outcome(done bool, err error) message {
	if errors.Is(err, pglock.ErrNotAcquired) || errors.Is(err, pglock.ErrLockAlreadyReleased) || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}
