// Serve: a lock library behind the protocol of docs/adapters.md, from a few functions. For Go 1.19 and later. `run` beside
// it compiles it together with the program that calls it, as if it were a file of that program.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
)

// Forever is the wait of an acquire without a limit.
const Forever = 100 * 365 * 24 * time.Hour

// Adapter is what Serve is given. L is a lock object. ctx ends when the call is cancelled.
type Adapter[L any] struct {
	// Make returns a lock object. urls: of the servers to connect to. lease: 0 is endless.
	Make func(urls []string, resource string, lease time.Duration) (L, error)
	// Acquire returns whether the lock was granted. wait: 0 is one try, Forever is without a limit.
	Acquire func(lock L, ctx context.Context, wait time.Duration) (bool, error)
	// Release, Renew and IsHeld return false if the lock is not ours. Only Release is needed.
	Release, Renew, IsHeld func(lock L, ctx context.Context) (bool, error)
	// Token returns the fencing token of the hold. It is asked once after each grant.
	Token func(lock L, ctx context.Context) (int64, error)
	// Lost is called after a grant, unless it is nested in another one. Call tell when the library says by itself that the
	// hold is lost.
	Lost func(lock L, tell func())
	// Forget ends what the lock object has started, as a renewal: lockstorm drops it, and the program lives on.
	Forget func(lock L)
	// Refused are the errors that say that another client holds the lock. After all others the outcome is unknown.
	Refused []error
	// WaitsFor are the waits that Acquire supports. Default: none, time, forever.
	WaitsFor []string
	// Hello has other keys of hello (docs/adapters.md): service, nodes, renews, fair, lease_key, ...
	Hello map[string]any
}

// Serve answers lockstorm's questions until standard input ends.
func Serve[L any](adapter Adapter[L]) {
	if adapter.Make == nil || adapter.Acquire == nil || adapter.Release == nil {
		fmt.Fprintln(os.Stderr, "error: an Adapter needs Make, Acquire and Release")
		os.Exit(1)
	}
	program := &servedProgram[L]{adapter: adapter, out: json.NewEncoder(os.Stdout), calls: map[float64]context.CancelFunc{}}
	program.out.SetEscapeHTML(false)
	os.Stdout = os.Stderr // standard output is for answers
	program.drop()
	questions := json.NewDecoder(os.Stdin)
	for {
		var asked servedQuestion
		if questions.Decode(&asked) != nil {
			os.Exit(0) // ends the goroutines of the library, too
		}
		program.take(asked)
	}
}

// A question has the keys of its op; pointers where a missing key, or null, means something else than 0.
type servedQuestion struct {
	ID       float64      `json:"id"`
	Op       string       `json:"op"`
	Protocol int          `json:"protocol"`
	Nodes    []servedNode `json:"nodes"`
	Thread   *int         `json:"thread"`
	Lock     *int         `json:"lock"`
	Resource *string      `json:"resource"`
	Wait     *float64     `json:"wait_ms"`
	Lease    servedNumber `json:"lease_ms"`
	Over     bool         `json:"over"`
	Call     float64      `json:"call"`
}

type servedNode struct {
	Unix, Host string
	Port       int
}

// A number of a question that may be missing; 0 for null.
type servedNumber struct {
	given bool
	value float64
}

func (to *servedNumber) UnmarshalJSON(text []byte) error {
	to.given = true
	return json.Unmarshal(text, &to.value)
}

type servedAnswer map[string]any

// A lock object, and what it was granted.
type servedHold[L any] struct {
	lock  L
	held  int
	token servedAnswer
}

// The running program.
type servedProgram[L any] struct {
	adapter  Adapter[L]
	making   sync.Mutex // held while a lock object is made, which may take time
	guard    sync.Mutex // of all that follows
	out      *json.Encoder
	protocol int
	urls     []string
	resource string
	lease    float64
	calls    map[float64]context.CancelFunc // under way, by the id of the question
	holds    map[int]*servedHold[L]
	threads  map[int]chan struct{} // by number: closed when the last call that it was asked for has ended
}

func (it *servedProgram[L]) drop() {
	it.holds, it.threads = map[int]*servedHold[L]{}, map[int]chan struct{}{}
}

func (it *servedProgram[L]) write(to servedQuestion, given servedAnswer) {
	given["id"] = to.ID
	if given["outcome"] == nil {
		given["outcome"] = "ok"
	}
	it.out.Encode(given)
}

func (it *servedProgram[L]) take(asked servedQuestion) {
	it.guard.Lock()
	defer it.guard.Unlock()
	switch asked.Op {
	case "hello":
		it.write(asked, it.hello(asked.Protocol))
	case "open":
		service, _ := it.adapter.Hello["service"].(string)
		it.urls = nil
		for _, each := range asked.Nodes {
			it.urls = append(it.urls, each.url(service))
		}
		it.resource, it.lease = *asked.Resource, asked.Lease.value
		it.write(asked, servedAnswer{})
	case "cancel":
		if cancel, found := it.calls[asked.Call]; found {
			cancel()
			it.write(asked, servedAnswer{})
		} else {
			it.write(asked, servedAnswer{"outcome": "refused", "error": "that call is not under way"})
		}
	case "forget":
		it.write(asked, it.forget())
	default:
		it.begin(asked)
	}
}

func (it *servedProgram[L]) forget() servedAnswer {
	if len(it.calls) > 0 {
		return servedAnswer{"outcome": "refused", "error": "a call is under way"}
	}
	dropped := it.holds
	it.drop()
	for _, each := range dropped {
		if it.adapter.Forget != nil {
			it.adapter.Forget(each.lock)
		}
	}
	return servedAnswer{}
}

func (from servedNode) url(service string) string {
	place := fmt.Sprintf("%s:%d", from.Host, from.Port)
	switch {
	case from.Unix != "":
		return "unix://" + from.Unix
	case service == "etcd":
		return "http://" + place
	case service == "postgres":
		return "postgresql://lockstorm@" + place + "/postgres?sslmode=disable"
	case service == "zookeeper":
		return place
	}
	return "redis://" + place
}

const servedNewest = 3 // version of the protocol

// Keys of hello in version 1, and those that only version 3 has. All others came with version 2.
const servedKeys1 = " name version source service lease token reentrant fair renews semaphore tcp waits nodes topology lease_unit_ms "
const servedKeys3 = " cancels over loss_notice holds_two silence_ms settings "

func (it *servedProgram[L]) hello(protocol int) servedAnswer {
	adapter, operations, ends := it.adapter, []string{}, []string{"release"}
	if adapter.Renew != nil {
		operations, ends = append(operations, "renew"), append(ends, "renew")
	}
	if adapter.IsHeld != nil {
		operations = append(operations, "is_held")
	}
	said := servedAnswer{"name": "my lock", "lease": true, "timer_ms": 20, // its scheduler looks every 10 ms for what has arrived
		"owner": "object", "threads": 8, "cancel": true, "of_object": []string{"lease_ms"},
		"cancels": ends, "over": append([]string{"acquire"}, ends...)}
	if adapter.Lost != nil {
		said["loss_notice"] = "lease"
	}
	for key, value := range adapter.Hello {
		said[key] = value
	}
	if protocol > 1 && adapter.Token != nil {
		operations = append(operations, "token")
	}
	if it.protocol = protocol; it.protocol > servedNewest {
		it.protocol = servedNewest
	}
	said["protocol"], said["operations"], said["token"] = it.protocol, operations, adapter.Token != nil
	if said["forms"] == nil {
		said["forms"] = []servedAnswer{it.form(said)}
	}
	for key := range said {
		first, third := strings.Contains(servedKeys1, " "+key+" "), strings.Contains(servedKeys3, " "+key+" ")
		if key != "protocol" && key != "operations" && (it.protocol == 1 && !first || it.protocol == 2 && third) {
			delete(said, key)
		}
	}
	return said
}

func (it *servedProgram[L]) form(said servedAnswer) servedAnswer {
	waits, lease := it.adapter.WaitsFor, "endless"
	if waits == nil {
		waits = []string{"none", "time", "forever"}
	}
	if said["renews"] == true {
		lease = "renewed"
	} else if said["lease"] == true {
		lease = "given"
	}
	return servedAnswer{"form": "acquire", "wait": waits, "lease": []string{lease}}
}

// The number of a thread or a lock object, which is 1 where it is missing.
func servedNumberOf(number *int) int {
	if number == nil {
		return 1
	}
	return *number
}

// Starts a call as a goroutine, which begins when the one before it in its thread has ended.
func (it *servedProgram[L]) begin(asked servedQuestion) {
	ctx, cancel := context.WithCancel(context.Background())
	it.calls[asked.ID] = cancel
	if asked.Over {
		cancel()
	}
	thread, ended := servedNumberOf(asked.Thread), make(chan struct{})
	before := it.threads[thread]
	it.threads[thread] = ended
	go func() {
		if before != nil {
			<-before
		}
		defer close(ended)
		given, on := it.outcome(ctx, asked)
		it.guard.Lock()
		delete(it.calls, asked.ID)
		cancel()
		it.write(asked, given)
		it.guard.Unlock()
		if asked.Op == "acquire" && given["outcome"] == "ok" && it.adapter.Lost != nil && it.count(on, 0) == 1 {
			it.adapter.Lost(on.lock, func() { it.lost(on, asked) })
		}
	}()
}

// The answer to a call. A panic of the library leaves the outcome unknown.
func (it *servedProgram[L]) outcome(ctx context.Context, asked servedQuestion) (given servedAnswer, on *servedHold[L]) {
	defer func() {
		if cause := recover(); cause != nil {
			given = servedAnswer{"outcome": "unknown", "error": fmt.Sprintf("panic: %v", cause)}
		}
	}()
	on, err := it.holdOf(asked)
	if err != nil {
		return servedAnswer{"outcome": "unknown", "error": err.Error()}, nil
	}
	done, given, err := it.perform(ctx, on, asked)
	switch {
	case err == nil && done:
		return given, on
	case err == nil:
		return servedAnswer{"outcome": "refused"}, on
	case ctx.Err() != nil && (asked.Op != "acquire" || errors.Is(err, context.Canceled)):
		outcome := "unknown" // a release may have reached the server
		if asked.Op == "acquire" {
			outcome = "refused"
		}
		return servedAnswer{"outcome": outcome, "cancelled": true, "error": err.Error()}, on
	}
	for _, refusal := range it.adapter.Refused {
		if errors.Is(err, refusal) {
			return servedAnswer{"outcome": "refused", "error": err.Error()}, on
		}
	}
	return servedAnswer{"outcome": "unknown", "error": err.Error()}, on
}

// The lock object that a question is about, which is made when it is first asked about.
func (it *servedProgram[L]) holdOf(asked servedQuestion) (*servedHold[L], error) {
	it.making.Lock()
	defer it.making.Unlock()
	number, resource, lease := servedNumberOf(asked.Lock), it.resource, it.lease
	it.guard.Lock()
	on := it.holds[number]
	it.guard.Unlock()
	if on != nil {
		return on, nil
	}
	if asked.Resource != nil {
		resource = *asked.Resource
	}
	if asked.Lease.given {
		lease = asked.Lease.value
	}
	lock, err := it.adapter.Make(it.urls, resource, servedTime(lease))
	if err != nil {
		return nil, err
	}
	it.guard.Lock()
	defer it.guard.Unlock()
	it.holds[number] = &servedHold[L]{lock: lock, token: servedAnswer{}}
	return it.holds[number], nil
}

func servedTime(number float64) time.Duration {
	return time.Duration(number * float64(time.Millisecond))
}

func (it *servedProgram[L]) perform(ctx context.Context, on *servedHold[L], asked servedQuestion) (bool, servedAnswer, error) {
	switch asked.Op {
	case "acquire":
		return it.acquire(ctx, on, asked)
	case "token":
		return true, on.answerToken(), nil
	case "release":
		it.count(on, -1) // a release says by itself that there was nothing to release
	}
	calls := map[string]func(L, context.Context) (bool, error){
		"release": it.adapter.Release, "renew": it.adapter.Renew, "is_held": it.adapter.IsHeld}
	done, err := calls[asked.Op](on.lock, ctx)
	return done, servedAnswer{}, err
}

func (on *servedHold[L]) answerToken() servedAnswer {
	given := servedAnswer{}
	for key, value := range on.token {
		given[key] = value
	}
	return given
}

func (it *servedProgram[L]) acquire(ctx context.Context, on *servedHold[L], asked servedQuestion) (bool, servedAnswer, error) {
	wait := Forever
	if asked.Wait != nil {
		wait = servedTime(*asked.Wait)
	}
	granted, err := it.adapter.Acquire(on.lock, ctx, wait)
	if err != nil || !granted {
		return false, nil, err
	}
	if it.adapter.Token != nil {
		token, err := it.adapter.Token(on.lock, ctx)
		if err != nil {
			return false, nil, err
		}
		on.token = servedAnswer{"token": token}
	}
	it.count(on, 1)
	return true, on.answerToken(), nil
}

func (it *servedProgram[L]) count(on *servedHold[L], change int) int {
	it.guard.Lock()
	defer it.guard.Unlock()
	on.held += change
	if on.held < 0 {
		on.held = 0
	}
	return on.held
}

// Tells that what this acquire was granted is lost, if it is still held and the lock object is still there.
func (it *servedProgram[L]) lost(on *servedHold[L], asked servedQuestion) {
	it.guard.Lock()
	defer it.guard.Unlock()
	if it.protocol < 3 || on.held == 0 || it.holds[servedNumberOf(asked.Lock)] != on {
		return
	}
	on.held = 0 // one notice a hold
	notice := servedAnswer{"notice": "lost", "thread": servedNumberOf(asked.Thread), "lock": servedNumberOf(asked.Lock)}
	if asked.Resource != nil {
		notice["resource"] = *asked.Resource
	}
	it.out.Encode(notice)
}
