// Judges operations by Porcupine, a linearizability checker of another author: a second opinion on checkers/linearizability.
// Reads what `lockstorm history to-porcupine` writes (docs/linearizable.md), and prints the name of each object and
// true or false: is it linearizable?
//
// Porcupine places every operation, so one of unknown outcome, which returns after everything, may also do nothing. With
// leases, a hold that was answered may end by itself before or after any operation; the moment of the answer is an
// operation of its own, which takes no time.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"math"
	"os"

	"github.com/anishathalye/porcupine"
)

const nobody = -1

type line struct {
	Client  int
	Call    int64
	Return  int64
	Kind    string
	Outcome string
	Value   *int64
	From    *int64
	Object  string
}

// What an operation asks, and what is known of its answer.
type input struct {
	line
	number int // of an acquire: which one, from 1
}

// Of a lock: who holds it, how deep or how many, since which acquire and whether that was answered; the newest token.
// Of a register: its value.
type state struct {
	owner, depth, grant int
	answered            bool
	value               int64
	written             bool
}

type settings struct {
	model   string
	permits int
	leases  bool
	// Tokens that are known.
	smallest, largest int64
}

func (it settings) acquire(now state, in input) []state {
	firm := in.Outcome == "ok"
	if it.model == "mutex" || it.model == "semaphore" {
		if now.depth >= it.permits {
			return nil
		}
		now.depth++
		return []state{now}
	}
	again := now.owner == in.Client && it.model == "reentrant-mutex"
	if now.owner != nobody && !again {
		return nil
	}
	now.owner = in.Client
	now.depth++
	if firm {
		now.grant, now.answered = in.number, false
	} else if !again {
		now.grant, now.answered = 0, true
	}
	if it.model != "fenced-mutex" {
		return []state{now}
	}
	return it.tokens(now, in)
}

// An unknown token is any whole number above the newest; of those above all that are known, one is enough.
func (it settings) tokens(now state, in input) []state {
	var next []state
	first, last := now.value+1, now.value+1
	if it.largest >= first {
		last = it.largest + 1
	}
	if in.Outcome == "ok" {
		if *in.Value < first {
			return nil
		}
		first, last = *in.Value, *in.Value
	}
	for token := first; token <= last; token++ {
		now.value = token
		next = append(next, now)
	}
	return next
}

func (it settings) release(now state, in input) []state {
	owned := it.model != "mutex" && it.model != "semaphore"
	if now.depth == 0 || (owned && now.owner != in.Client) {
		return nil
	}
	now.depth--
	if now.depth == 0 {
		now.owner, now.grant, now.answered = nobody, 0, false
	}
	return []state{now}
}

// What a register is after a read, write or cas.
func access(now state, in input) []state {
	holds := func(value *int64) bool {
		return (value != nil) == now.written && (value == nil || *value == now.value)
	}
	if (in.Kind == "read" && !holds(in.Value)) || (in.Kind == "cas" && !holds(in.From)) {
		return nil
	}
	if in.Kind != "read" {
		now.value, now.written = *in.Value, true
	}
	return []state{now}
}

func (it settings) happen(now state, in input) []state {
	switch in.Kind {
	case "acquire":
		return it.acquire(now, in)
	case "release":
		return it.release(now, in)
	case "renew":
		if now.owner != in.Client {
			return nil
		}
		if it.model == "fenced-mutex" && in.Value != nil {
			if *in.Value < now.value {
				return nil
			}
			now.value = *in.Value
		}
		return []state{now}
	case "answered":
		now.answered = now.answered || now.grant == in.number
		return []state{now}
	default:
		return access(now, in)
	}
}

func (it settings) step(before, in, _ interface{}) []interface{} {
	now, asked := before.(state), in.(input)
	after := it.happen(now, asked)
	if asked.Outcome == "unknown" {
		after = append(after, now)
	}
	var next []interface{}
	for _, each := range after {
		next = append(next, each)
		if it.leases && each.owner != nobody && each.answered {
			next = append(next, state{owner: nobody, value: each.value})
		}
	}
	return next
}

// Below the smallest token that is known there is room for all that are not.
func (it settings) first(operations int) state {
	if it.model != "fenced-mutex" {
		return state{owner: nobody}
	}
	return state{owner: nobody, value: it.smallest - int64(operations) - 1}
}

func max(one, other int64) int64 {
	if one > other {
		return one
	}
	return other
}

func min(one, other int64) int64 {
	return -max(-one, -other)
}

// Is the object linearizable?
func (it settings) judge(lines []line) bool {
	it.smallest, it.largest = math.MaxInt32, 0
	var history []porcupine.Operation
	for number, each := range lines {
		in := input{each, number + 1}
		history = append(history, porcupine.Operation{Input: in, Call: 4 * each.Call, Return: 4 * each.Return})
		if each.Outcome != "ok" {
			continue
		}
		if each.Value != nil && (each.Kind == "acquire" || each.Kind == "renew") {
			it.largest = max(it.largest, *each.Value)
			it.smallest = min(it.smallest, *each.Value)
		}
		if it.leases && each.Kind == "acquire" {
			in.Kind = "answered"
			at := 4 * each.Return
			history = append(history, porcupine.Operation{Input: in, Call: at + 1, Return: at + 2})
		}
	}
	model := porcupine.NondeterministicModel{
		Init: func() []interface{} { return []interface{}{it.first(len(lines))} },
		Step: it.step,
	}
	return porcupine.CheckOperations(model.ToModel(), history)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(2)
}

func main() {
	it := settings{}
	flag.StringVar(&it.model, "model", "", "mutex, owner-mutex, reentrant-mutex, fenced-mutex, semaphore or register")
	flag.IntVar(&it.permits, "permits", 1, "of a semaphore")
	flag.BoolVar(&it.leases, "leases", false, "a hold may end by itself once it was answered; of locks with an owner")
	flag.Parse()
	objects := map[string][]line{}
	var names []string
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	for in.More() {
		var read line
		if err := in.Decode(&read); err != nil {
			fail(err)
		}
		if _, known := objects[read.Object]; !known {
			names = append(names, read.Object)
		}
		objects[read.Object] = append(objects[read.Object], read)
	}
	out := bufio.NewWriter(os.Stdout)
	for _, name := range names {
		fmt.Fprintln(out, name, it.judge(objects[name]))
	}
	if err := out.Flush(); err != nil {
		fail(err)
	}
}
