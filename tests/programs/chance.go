// All that Go programs take for chance: random numbers, the order of maps, of selects and of goroutines. An argument: how
// often each goroutine fills and frees memory, so that the collector runs.
package main

import (
	crypto "crypto/rand"
	"fmt"
	"math/rand"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

func main() {
	bytes := make([]byte, 8)
	crypto.Read(bytes)
	fmt.Println("random", rand.Int63(), fmt.Sprintf("%x", bytes))
	order := ""
	for key := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8, "i": 9} {
		order += key
	}
	fmt.Println("map", order)
	one, other := make(chan int, 20), make(chan int, 20)
	for each := 0; each < 20; each++ {
		one <- 0
		other <- 1
	}
	chosen := ""
	for each := 0; each < 20; each++ {
		select {
		case value := <-one:
			chosen += strconv.Itoa(value)
		case value := <-other:
			chosen += strconv.Itoa(value)
		}
	}
	fmt.Println("select", chosen)
	rounds := 10
	if len(os.Args) > 1 {
		rounds, _ = strconv.Atoi(os.Args[1])
	}
	var group sync.WaitGroup
	var mutex sync.Mutex
	var turns strings.Builder
	for number := 0; number < 10; number++ {
		group.Add(1)
		go func(number int) { // before Go 1.22 all turns of a loop share its variable
			defer group.Done()
			for round := 0; round < rounds; round++ {
				var kept [][]byte
				for each := 0; each < 50; each++ {
					kept = append(kept, make([]byte, 5000))
				}
				time.Sleep(time.Duration(rand.Intn(20*len(kept))) * time.Millisecond / 50)
				mutex.Lock()
				if round%5 == 0 {
					turns.WriteString(strconv.Itoa(number))
				}
				mutex.Unlock()
				if round%25 == 24 {
					runtime.GC()
				}
			}
		}(number)
	}
	group.Wait()
	fmt.Println("goroutines", turns.String())
}
