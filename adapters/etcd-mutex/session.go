// A lock object of the adapter, and its session.
package main

import (
	"context"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// What a lock object is made of: the library's mutex, or its election, whose leader holds the lock.
type holder interface {
	acquire(ctx context.Context, once bool) error
	release(ctx context.Context) error
	owns() etcd.Cmp
	token() int64
}

// A lock object has a session of its own, without which it is worth nothing.
type lock struct {
	session *concurrency.Session
	holder  holder
	asked   message // the acquire whose hold may be lost; nil: nothing is held
}

func init() {
	drop = func(on *lock) {
		if on.session != nil {
			on.session.Orphan() // gives nothing back
		}
	}
	heed = func(on *lock, question message) {
		on.asked = question
		if !isElection {
			go on.watch(on.session)
		}
	}
}

// The library closes Done when the session of a hold has ended.
func (on *lock) watch(session *concurrency.Session) {
	<-session.Done()
	guard.Lock()
	asked := on.asked
	guard.Unlock()
	if on.session == session && asked != nil {
		lost(on, asked)
	}
}

// A session that has expired is replaced, with its holder.
func (on *lock) ready(ctx context.Context, question message) (err error) {
	if on.session != nil {
		select {
		case <-on.session.Done():
		default:
			return nil
		}
	}
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	lease, err := client.Grant(within, int64(settings["lease_ms"].(float64)/1000))
	if err == nil {
		on.session, err = concurrency.NewSession(client, concurrency.WithLease(lease.ID))
	}
	if err != nil {
		return err
	}
	on.holder = newHolder(on.session, "/"+orElse(question["resource"], settings["resource"].(string)))
	return nil
}
