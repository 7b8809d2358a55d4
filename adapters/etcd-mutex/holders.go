// How the library's mutex and its election are asked.
package main

import (
	"context"
	"errors"
	"time"

	etcd "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

func newHolder(session *concurrency.Session, prefix string) holder {
	if isElection {
		return election{concurrency.NewElection(session, prefix)}
	}
	return mutex{concurrency.NewMutex(session, prefix)}
}

type mutex struct{ *concurrency.Mutex }

func (held mutex) release(ctx context.Context) error { return held.Unlock(ctx) }
func (held mutex) owns() etcd.Cmp                    { return held.IsOwner() }
func (held mutex) token() int64                      { return held.Header().Revision }
func (held mutex) acquire(ctx context.Context, once bool) error {
	if once {
		return held.TryLock(ctx)
	}
	return held.Lock(ctx)
}

type election struct{ *concurrency.Election }

const oneTry = 500 * time.Millisecond // an election has none: version 1 of the protocol asks for it

func (held election) owns() etcd.Cmp {
	return etcd.Compare(etcd.CreateRevision(held.Key()), "=", held.Rev())
}
func (held election) token() int64 { return held.Rev() }
func (held election) acquire(ctx context.Context, once bool) error {
	asked, cancel := context.WithCancel(ctx)
	if once {
		asked, cancel = context.WithTimeout(ctx, oneTry)
	}
	defer cancel()
	err := held.Campaign(asked, "leader")
	if once && errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return concurrency.ErrLocked
	}
	return err
}

// Resign says nothing of a leadership that there is not.
func (held election) release(ctx context.Context) error {
	if held.Key() == "" {
		return errReleased
	}
	return held.Resign(ctx)
}
