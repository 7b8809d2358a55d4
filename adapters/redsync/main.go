// redsync: a majority of nodes, requests in parallel, validity by Go's monotonic clock.
package main

import (
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

type message map[string]any

var settings message // the request "open"
var pools []redis.Pool
var mutex *redsync.Mutex

// An error other than these means that nodes did not answer.
func outcome(done bool, err error) message {
	taken, extend := new(redsync.ErrTaken), errors.Is(err, redsync.ErrExtendFailed)
	if errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || extend || (err == nil && !done) {
		return message{"outcome": "refused"}
	} else if err != nil {
		return message{"outcome": "unknown", "error": err.Error()}
	}
	return message{"outcome": "ok"}
}

func reply(request message) message {
	switch request["op"] {
	case "hello":
		return message{"outcome": "ok", "protocol": 1, "name": "redsync", "version": version, "lease": true, "nodes": 5,
			"source": "redsync, mutex.go", "waits": "polling", "operations": []string{"renew"}}
	case "open":
		settings = request
		for _, node := range request["nodes"].([]any) {
			at := node.(map[string]any)["unix"].(string)
			options := client.Options{Network: "unix", Addr: at, MaxRetries: -1, ReadTimeout: time.Second}
			pools = append(pools, goredis.NewPool(client.NewClient(&options)))
		}
	case "acquire":
		options := []redsync.Option{redsync.WithExpiry(time.Duration(settings["lease_ms"].(float64) * 1e6))}
		if wait, limited := request["wait_ms"].(float64); limited {
			options = append(options, redsync.WithTries(int((wait+99)/100)+1), redsync.WithRetryDelay(retry))
		}
		mutex = redsync.New(pools...).NewMutex(settings["resource"].(string), options...)
		answer := outcome(true, mutex.LockContext(context.Background()))
		if answer["outcome"] == "ok" {
			var now syscall.Timespec
			syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
			answer["valid_until_ms"] = float64(now.Nano()+int64(time.Until(mutex.Until()))) / 1e6
		}
		return answer
	case "release":
		return outcome(mutex.Unlock())
	case "renew":
		return outcome(mutex.Extend())
	}
	return message{"outcome": "ok"}
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for request := (message{}); in.Decode(&request) == nil; request = (message{}) {
		answer := reply(request)
		answer["id"] = request["id"]
		out.Encode(answer)
	}
}
