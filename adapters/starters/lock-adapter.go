//go:build ignore

// A lock for lockstorm: put yours in its place. lock-adapter beside it builds and starts this file together with Serve and
// Adapter, whose fields `lockstorm docs adapters` explains.
package main

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/redis/go-redis/v9" // 1. your library
)

type myLock struct {
	key, owner string
	lease      time.Duration
}

var link *redis.Client

func newLock(urls []string, resource string, lease time.Duration) (*myLock, error) {
	if link == nil { // 2. a connection to the servers that lockstorm names, and to no other
		options, _ := redis.ParseURL(urls[0])
		options.MaxRetries, options.ReadTimeout = -1, time.Second // by default it sends a command again
		link = redis.NewClient(options)
	}
	owner := make([]byte, 16)
	_, err := rand.Read(owner)
	return &myLock{resource, string(owner), lease}, err
}

func (lock *myLock) acquire(ctx context.Context, wait time.Duration) (bool, error) {
	for until := time.Now().Add(wait); ; time.Sleep(50 * time.Millisecond) {
		granted, err := link.SetNX(ctx, lock.key, lock.owner, lock.lease).Result() // an error if ctx has ended
		if granted || err != nil || !time.Now().Before(until) {
			return granted, err
		}
	}
}

func (lock *myLock) ifOurs(ctx context.Context, call string) (bool, error) {
	script := "return redis.call('GET', KEYS[1]) == ARGV[1] and " + call + " or 0"
	return link.Eval(ctx, script, []string{lock.key}, lock.owner, lock.lease.Milliseconds()).Bool()
}

func main() { // 3. a lock object, and its calls. A lock that renews itself needs Forget, which stops that
	Serve(Adapter[*myLock]{
		Make:    newLock,
		Acquire: (*myLock).acquire,
		Release: func(it *myLock, ctx context.Context) (bool, error) {
			return it.ifOurs(ctx, "redis.call('DEL', KEYS[1])")
		},
		Renew: func(it *myLock, ctx context.Context) (bool, error) {
			return it.ifOurs(ctx, "redis.call('PEXPIRE', KEYS[1], ARGV[2])")
		},
		Hello: map[string]any{"name": "my lock", "lease_key": "{resource}"}, // the key that ends with the lease
	})
}
