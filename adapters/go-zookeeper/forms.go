// What the adapter says of go-zookeeper, and how its errors are answered.
package main

import (
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
)

// A lock object says nothing of itself, and nobody can end its Lock.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "go-zookeeper", "version": "1.0.4",
	"source": "go-zookeeper, lock.go", "service": "zookeeper", "tcp": true, "lease": true, "renews": true,
	"waits": "push", "operations": []}`,
	true: `{"protocol": 2, "threads": 8, "owner": "object", "keeps": ["/{resource}"], "forms": [
	{"form": "Lock", "wait": ["forever"], "lease": ["renewed"]},
	{"form": "LockWithData", "wait": ["forever"], "lease": ["renewed"]}]}`}

func outcome(done bool, err error) message {
	if errors.Is(err, zk.ErrDeadlock) || errors.Is(err, zk.ErrNotLocked) || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

// Whether the servers answer.
func answers() bool {
	return within(time.Second, func() message {
		_, _, err := conn.Exists("/")
		return outcome(true, err)
	}, func(message) {})["outcome"] == "ok"
}
