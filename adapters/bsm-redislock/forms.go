// What the adapter says of bsm/redislock, and how its errors are answered.
package main

import (
	"errors"

	"github.com/bsm/redislock"
)

// timer_ms: Go's scheduler may see what has arrived, and run a goroutine that is ready, only when its sysmon looks, every
// 10 ms.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "bsm/redislock", "version": "0.9.4",
	"source": "bsm/redislock, redislock.go", "lease": true, "waits": "polling", "operations": ["renew"]}`,
	true: `{"protocol": 2, "operations": ["renew", "is_held"], "threads": 8, "owner": "object", "cancel": true,
	"lease_key": "{resource}", "renew_lease": true, "timer_ms": 20, "forms": [
	{"form": "Obtain", "wait": ["none"], "lease": ["given"]},
	{"form": "Obtain, LinearBackoff", "wait": ["time", "forever"], "lease": ["given"]}]}`}

func init() {
	hello3 = `{"protocol": 3, "cancels": ["release", "renew"], "over": ["acquire", "release", "renew"]}`
}

func outcome(done bool, err error) message {
	if errors.Is(err, redislock.ErrNotObtained) || errors.Is(err, redislock.ErrLockNotHeld) || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}
