// The protocol (docs/adapters.md). The other files have hellos, open, and perform, which is a call.
package main

import (
	"context"
	"encoding/json"
	"os"
	"sync"
)

type message map[string]any

var guard, out = sync.Mutex{}, json.NewEncoder(os.Stdout) // of all that follows, and of standard output
var calls = map[any]context.CancelFunc{}                  // calls under way, by the id of the question
var locks = map[any]*lock{}                               // by number
var threads = map[any]chan struct{}{}                     // by number: closed when the last call that it was asked for has ended
var drop = func(on *lock) {}                              // ends what a lock object has started and would outlive it
var heed = func(on *lock, question message) {}            // listens whether what this acquire was granted is lost
var hello3 string                                         // what version 3 adds; empty: the adapter speaks version 2

// `hellos`, by whether it is version 2, says what the adapter says; adapters/install-old starts it with other releases.
func hello(question message) (given message) {
	json.Unmarshal([]byte(hellos[false]), &given)
	json.Unmarshal([]byte(hellos[question["protocol"].(float64) > 1]), &given)
	if question["protocol"].(float64) > 2 && hello3 != "" {
		json.Unmarshal([]byte(hello3), &given)
	}
	if old := os.Getenv("LOCKSTORM_LIBRARY_VERSION"); old != "" {
		given["version"] = old
	}
	return given
}

func orElse[T any](given any, otherwise T) T {
	if value, found := given.(T); found {
		return value
	}
	return otherwise
}

func answer(question, given message) {
	given["id"] = question["id"]
	out.Encode(given)
}

// Tells that what this acquire was granted is lost, if the lock object is still there.
func lost(on *lock, asked message) {
	guard.Lock()
	defer guard.Unlock()
	if locks[asked["lock"]] == on {
		out.Encode(message{"notice": "lost", "thread": asked["thread"], "lock": asked["lock"], "resource": asked["resource"]})
	}
}

// The answer to a call whose context may have ended: whether the server has executed it is not known then.
func givenUp(ctx context.Context, answer message) message {
	if ctx.Err() != nil && answer["outcome"] == "unknown" {
		answer["cancelled"] = true
	}
	return answer
}

// Starts a call as a goroutine, which begins when the one before it in its thread has ended.
func begin(question message) {
	ctx, cancel := context.WithCancel(context.Background())
	calls[question["id"]] = cancel
	if question["over"] == true {
		cancel()
	}
	number, thread := orElse[any](question["lock"], 1.0), orElse[any](question["thread"], 1.0)
	if locks[number] == nil {
		locks[number] = new(lock)
	}
	on, before, ended := locks[number], threads[thread], make(chan struct{})
	threads[thread] = ended
	go func() {
		if before != nil {
			<-before
		}
		given := perform(ctx, on, question)
		guard.Lock()
		defer guard.Unlock()
		delete(calls, question["id"])
		answer(question, given)
		if question["op"] == "acquire" && given["outcome"] == "ok" {
			heed(on, question)
		}
		close(ended)
	}()
}

func main() {
	in := json.NewDecoder(os.Stdin)
	for question := (message{}); in.Decode(&question) == nil; question = (message{}) {
		guard.Lock()
		switch cancel := calls[question["call"]]; question["op"] {
		case "hello":
			answer(question, hello(question))
		case "open":
			answer(question, open(question))
		case "cancel":
			if cancel != nil {
				cancel()
			}
			answer(question, outcome(cancel != nil, nil))
		case "forget":
			if len(calls) == 0 {
				for _, on := range locks {
					drop(on)
				}
				locks, threads = map[any]*lock{}, map[any]chan struct{}{}
			}
			answer(question, outcome(len(calls) == 0, nil))
		default:
			begin(question)
		}
		guard.Unlock()
	}
}
