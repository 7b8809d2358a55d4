// redsync: a majority of nodes, asked side by side, validity by Go's monotonic clock.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"os"
	"syscall"
	"time"
	"unsafe"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

const version, retry, clockMonotonic = "4.9.4", 100 * time.Millisecond, 1

type question struct {
	ID       int64
	Op       string
	Resource string
	Lease    int64  `json:"lease_ms"`
	Wait     *int64 `json:"wait_ms"`
	Nodes    []struct{ Unix string }
}
type answer map[string]any

var asked question // by open
var pools []redis.Pool
var mutex *redsync.Mutex

func monotonicMs() float64 {
	var now syscall.Timespec
	syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
	return float64(now.Nano()) / 1e6
}

// What it raises besides "taken" is about nodes that did not answer.
func outcome(done bool, err error) answer {
	taken, extend := new(redsync.ErrTaken), errors.Is(err, redsync.ErrExtendFailed)
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || extend || (err == nil && !done) {
		return answer{"outcome": "refused"}
	} else if err != nil {
		return answer{"outcome": "unknown", "error": err.Error()}
	}
	return answer{"outcome": "ok"}
}

func reply(q question) answer {
	switch q.Op {
	case "hello":
		return answer{"outcome": "ok", "protocol": 1, "name": "redsync", "version": version, "lease": true, "nodes": 5,
			"source": "redsync, mutex.go", "waits": "polling", "operations": []string{"renew"}}
	case "open":
		for asked = q; len(pools) < len(q.Nodes); {
			options := client.Options{Network: "unix", Addr: q.Nodes[len(pools)].Unix, MaxRetries: -1, ReadTimeout: time.Second}
			pools = append(pools, goredis.NewPool(client.NewClient(&options)))
		}
	case "acquire":
		options := []redsync.Option{redsync.WithExpiry(time.Duration(asked.Lease) * time.Millisecond)}
		if q.Wait != nil {
			tries := int((*q.Wait+99)/100) + 1
			options = append(options, redsync.WithTries(tries), redsync.WithRetryDelay(retry))
		}
		mutex = redsync.New(pools...).NewMutex(asked.Resource, options...)
		said := outcome(true, mutex.LockContext(context.Background()))
		if said["outcome"] == "ok" {
			said["valid_until_ms"] = monotonicMs() + float64(time.Until(mutex.Until()))/1e6
		}
		return said
	case "release":
		return outcome(mutex.Unlock())
	case "renew":
		return outcome(mutex.Extend())
	}
	return answer{"outcome": "ok"}
}

func main() {
	lines, out := bufio.NewScanner(os.Stdin), json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var q question
		json.Unmarshal(lines.Bytes(), &q)
		said := reply(q)
		said["id"] = q.ID
		out.Encode(said)
	}
}
