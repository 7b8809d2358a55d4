// go-pglock: PostgreSQL's advisory locks, each lock object with a connection of its own from a pool.
package main

import (
	"context"
	"hash/fnv"
	"strings"
	"time"

	"github.com/allisson/go-pglock/v3"
)

// `made`: it has a connection. `form`: that of the acquire that was granted, which says how it is given back.
type lock struct {
	held          pglock.Lock
	made, granted bool
	form          string
}

func (on *lock) ready(ctx context.Context, question message) (err error) {
	if on.made {
		return nil
	}
	id := fnv.New64()
	id.Write([]byte(orElse(question["resource"], settings["resource"].(string))))
	on.held, err = pglock.NewLock(ctx, int64(id.Sum64()), db)
	on.made = err == nil
	return err
}

func acquire(ctx context.Context, on *lock, question message) message {
	wait, limited := question["wait_ms"].(float64)
	asked := ctx
	if limited && wait > 0 {
		within, cancel := context.WithTimeout(ctx, time.Duration(wait*1e6))
		defer cancel()
		asked = within
	}
	err, taken := on.ready(asked, question), true
	if err == nil && limited && wait == 0 {
		taken, err = on.held.Lock(asked)
	} else if err == nil {
		err = on.held.WaitAndLock(asked)
	}
	if err != nil {
		on.closed() // its connection is of no use any more
		return ended(ctx, asked, err)
	}
	on.form, on.granted = orElse(question["form"], ""), taken
	return outcome(taken, nil)
}

func (on *lock) closed() (err error) {
	if on.made {
		err = on.held.Close()
	}
	on.made, on.granted = false, false
	return err
}

func perform(ctx context.Context, on *lock, question message) message {
	if question["op"] == "acquire" {
		return acquire(ctx, on, question)
	} else if !on.granted {
		return message{"outcome": "refused"}
	} else if strings.HasSuffix(on.form, closes) {
		return outcome(true, on.closed())
	}
	err := on.held.Unlock(ctx)
	on.granted = false
	return outcome(true, err)
}
