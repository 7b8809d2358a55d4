// A lock library for lockstorm: change the five marked places. Build: go mod tidy && go build -o lock-adapter .
package main

import (
	"encoding/json"
	"errors"
	"os"
	"time"

	"github.com/go-redsync/redsync/v4" // 1. your library
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	client "github.com/redis/go-redis/v9"
)

type line map[string]any

// 2. Its description; docs/adapters.md has all keys.
func describe(answer line) {
	answer["protocol"], answer["name"], answer["lease"] = 1, "my lock", true
	answer["nodes"] = 3 // how many independent servers it needs
	answer["operations"] = []string{"renew"}
}

var opened line
var pools []redis.Pool
var mutex *redsync.Mutex

// 3. What a lock object needs. The proxy of the trial listens at the nodes: connect to these addresses only.
func open(request line) {
	opened = request
	for _, node := range request["nodes"].([]any) {
		path := node.(map[string]any)["unix"].(string)
		options := client.Options{Network: "unix", Addr: path, ReadTimeout: time.Second}
		options.MaxRetries = -1 // by default go-redis sends a command whose answer was lost again
		pools = append(pools, goredis.NewPool(client.NewClient(&options)))
	}
}

// 4. One request: true it succeeded, false it was refused.
func answered(request line) (bool, error) {
	switch request["op"] {
	case "acquire":
		options := []redsync.Option{redsync.WithExpiry(time.Duration(opened["lease_ms"].(float64)) * time.Millisecond)}
		if waitMs, limited := request["wait_ms"].(float64); limited { // null: the default of the library
			tries := 1 + int(waitMs+49)/50
			options = append(options, redsync.WithTries(tries), redsync.WithRetryDelay(50*time.Millisecond))
		}
		mutex = redsync.New(pools...).NewMutex(opened["resource"].(string), options...)
		return true, mutex.Lock()
	case "release":
		return mutex.Unlock()
	default:
		return mutex.Extend()
	}
}

// 5. What your library returns if another holds the lock. After any other error the server may have executed it.
func isRefusal(err error) bool {
	taken := new(redsync.ErrTaken)
	return errors.As(err, &taken) || errors.Is(err, redsync.ErrFailed) || errors.Is(err, redsync.ErrExtendFailed)
}

func main() {
	in, out := json.NewDecoder(os.Stdin), json.NewEncoder(os.Stdout)
	for request := (line{}); in.Decode(&request) == nil; request = (line{}) {
		answer := line{"id": request["id"], "outcome": "ok"}
		if request["op"] == "hello" {
			describe(answer)
		} else if request["op"] == "open" {
			open(request)
		} else if done, err := answered(request); isRefusal(err) || (err == nil && !done) {
			answer["outcome"] = "refused"
		} else if err != nil {
			answer["outcome"], answer["error"] = "unknown", err.Error()
		}
		out.Encode(answer)
	}
}
