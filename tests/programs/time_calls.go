// The ways of Go to wait and to tell the time; prints when each ended. Runs under the supervisor.
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"
)

var began = time.Now()

// In hundredths of a second: Go's monitor thread sleeps for 20 us now and then while goroutines run, each time 50 us too
// long, and that counts.
func show(step string, result any) {
	since := time.Since(began).Milliseconds() / 10
	fmt.Printf("%d.%02d %s %v\n", since/100, since%100, step, result)
}

func timers() {
	time.Sleep(30 * time.Second)
	show("Sleep", "")
	<-time.After(5 * time.Second)
	show("After", "")
	ticker := time.NewTicker(time.Second)
	for tick := 0; tick < 5; tick++ {
		<-ticker.C
	}
	ticker.Stop()
	show("Ticker", "")
	timer := time.NewTimer(time.Hour)
	timer.Reset(2500 * time.Millisecond)
	<-timer.C
	show("Timer.Reset", "")
	done := make(chan bool)
	time.AfterFunc(4*time.Second, func() { done <- true })
	select {
	case <-done:
		show("AfterFunc", "")
	case <-time.After(time.Minute):
	}
	select {
	case <-done:
	case <-time.After(10 * time.Millisecond):
		show("select", "late")
	}
}

func contexts() {
	ctx, cancel := context.WithTimeout(context.Background(), 7*time.Second)
	defer cancel()
	<-ctx.Done()
	show("WithTimeout", ctx.Err())
	ctx, stop := context.WithDeadline(context.Background(), time.Now().Add(3*time.Second))
	defer stop()
	show("CommandContext", exec.CommandContext(ctx, "sleep", "100").Run())
	show("Command", exec.Command("sleep", "6").Run())
}

func connections() {
	listener, _ := net.Listen("tcp", "127.0.0.1:0")
	go func() {
		peer, _ := listener.Accept()
		time.Sleep(2 * time.Second)
		peer.Write([]byte("x"))
		time.Sleep(time.Hour)
	}()
	connection, _ := net.Dial("tcp", listener.Addr().String())
	bytes := make([]byte, 1)
	count, _ := connection.Read(bytes)
	show("Read", count)
	connection.SetReadDeadline(time.Now().Add(4 * time.Second))
	_, err := connection.Read(bytes)
	show("SetReadDeadline", errors.Is(err, os.ErrDeadlineExceeded))
}

func goroutines() {
	var group sync.WaitGroup
	var mutex sync.Mutex
	sum := 0
	for each := 1; each <= 100; each++ {
		group.Add(1)
		go func(each int) { // before Go 1.22 all turns of a loop share its variable
			defer group.Done()
			time.Sleep(time.Duration(each) * time.Millisecond)
			mutex.Lock()
			sum += each
			mutex.Unlock()
		}(each)
	}
	group.Wait()
	show("WaitGroup", sum)
	runtime.GC()
	show("GC", "")
}

func main() {
	fmt.Println(began.UnixNano())
	show("start", "")
	timers()
	contexts()
	connections()
	goroutines()
	fmt.Println(time.Now().UnixMilli() / 10)
}
