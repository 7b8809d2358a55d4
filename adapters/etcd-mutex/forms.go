// What the adapter says of etcd's client.
package main

// timer_ms: a Lock whose context has ended still asks for its key to be deleted before it returns.
var hellos = map[bool]string{false: `{"outcome": "ok", "protocol": 1, "name": "etcd clientv3", "version": "3.7.3",
	"source": "etcd, client/v3/concurrency/mutex.go", "service": "etcd", "lease": true, "renews": true, "token": true,
	"lease_unit_ms": 1000, "waits": "push", "operations": ["is_held"]}`,
	true: `{"protocol": 2, "threads": 8, "owner": "object", "cancel": true, "timer_ms": 5, "forms": [
	{"form": "Mutex.Lock", "wait": ["time", "forever"], "lease": ["renewed"]},
	{"form": "Mutex.TryLock", "wait": ["none"], "lease": ["renewed"]}]}`}
