// A limit for calls that have none: version 1 of the protocol wants an answer in time.
package main

import "time"

// What the call answers, or nil: it has not ended within the limit, and `late` is given its answer when it has.
func within(limit time.Duration, call func() message, late func(answer message)) message {
	ended := make(chan message, 1)
	go func() { ended <- call() }()
	select {
	case answer := <-ended:
		return answer
	case <-time.After(limit):
		go func() { late(<-ended) }()
		return nil
	}
}
