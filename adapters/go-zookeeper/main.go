// go-zookeeper's Lock: the first of the sequential nodes below a path, each tied to the session of the connection.
package main

import (
	"context"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"
)

const oneTry, noLimit = 3 * time.Second, 50 * time.Second

var settings message // the question "open"
var conn *zk.Conn

type lock struct{ held *zk.Lock }
type silent struct{}

func (silent) Printf(string, ...any) {}

func open(question message) message {
	settings = question
	node := question["nodes"].([]any)[0].(map[string]any)
	at, timeout := fmt.Sprintf("%v:%v", node["host"], node["port"]), time.Duration(question["lease_ms"].(float64)*1e6)
	made, events, err := zk.Connect([]string{at}, timeout, zk.WithLogger(silent{}), zk.WithLogInfo(false))
	conn = made
	for started := time.After(10 * time.Second); err == nil && conn.State() != zk.StateHasSession; {
		select {
		case <-events:
		case <-started:
			return message{"outcome": "unknown", "error": "no session in time"}
		}
	}
	return outcome(true, err)
}

// Lock waits without a limit. Who wants one gives the call up, and gives back what it is granted later.
func limited(held *zk.Lock, question message) message {
	wait, limited := question["wait_ms"].(float64)
	limit := max(time.Duration(wait*1e6), oneTry)
	if !limited {
		limit = noLimit
	}
	answer := within(limit, func() message { return outcome(true, held.Lock()) }, func(late message) {
		if late["outcome"] == "ok" {
			held.Unlock()
		}
	})
	if answer != nil {
		return answer
	} else if limited && answers() {
		return message{"outcome": "refused"}
	}
	return message{"outcome": "unknown", "error": "no answer in time"}
}

func perform(_ context.Context, on *lock, question message) message {
	guard.Lock()
	if on.held == nil || question["op"] == "acquire" && question["lock"] == nil { // version 1: a new one for each
		path := "/" + orElse(question["resource"], settings["resource"].(string))
		on.held = zk.NewLock(conn, path, zk.WorldACL(zk.PermAll))
	}
	held := on.held
	guard.Unlock()
	switch {
	case question["op"] == "release":
		return outcome(true, held.Unlock())
	case question["form"] == "LockWithData":
		return outcome(true, held.LockWithData([]byte("holder")))
	case question["form"] != nil:
		return outcome(true, held.Lock())
	}
	return limited(held, question)
}
