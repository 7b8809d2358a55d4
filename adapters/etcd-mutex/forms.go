// What the adapter says of etcd's client; with the argument `election`, of its elections.
package main

import "os"

const mutexes, elections = `{"outcome": "ok", "protocol": 1, "name": "etcd clientv3", "version": "3.7.3",
	"source": "etcd, client/v3/concurrency/mutex.go", "service": "etcd", "lease": true, "renews": true, "token": true,
	"lease_unit_ms": 1000, "waits": "push", "operations": ["is_held"]}`, `{"outcome": "ok", "protocol": 1,
	"name": "etcd clientv3 Election", "version": "3.7.3", "source": "etcd, client/v3/concurrency/election.go",
	"service": "etcd", "lease": true, "renews": true, "token": true, "fair": true, "lease_unit_ms": 1000,
	"waits": "push", "operations": ["is_held"]}`

// timer_ms: Go's scheduler, also that of the server, may see what has arrived only after sysmon's 10 ms; and a Lock
// whose context has ended still asks for its key to be deleted before it returns. watchdog_divisor: a session asks
// every 500 ms whether a third of its lease is over, so one of 2 s is renewed after half of it.
const mutexForms, electionForms = `{"protocol": 2, "threads": 8, "owner": "object", "cancel": true, "timer_ms": 20,
	"watchdog_divisor": 2, "forms": [
	{"form": "Mutex.Lock", "wait": ["time", "forever"], "lease": ["renewed"]},
	{"form": "Mutex.TryLock", "wait": ["none"], "lease": ["renewed"]}]}`, `{"protocol": 2, "threads": 8, "owner": "object",
	"cancel": true, "timer_ms": 20, "watchdog_divisor": 2, "forms": [
	{"form": "Election.Campaign", "wait": ["time", "forever"], "lease": ["renewed"]}]}`

var isElection = len(os.Args) > 1 && os.Args[1] == "election"
var hellos = map[bool]string{false: mutexes, true: mutexForms}

func init() {
	hello3 = `{"protocol": 3, "cancels": ["release"], "over": ["acquire", "release"], "loss_notice": "lease"}`
	if isElection { // Campaign grants to a session that has ended: a notice that comes with the grant would excuse it
		hello3 = `{"protocol": 3, "cancels": ["release"], "over": ["acquire", "release"]}`
		hellos = map[bool]string{false: elections, true: electionForms}
	}
}
