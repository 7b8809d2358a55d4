// The table of the locks, which clients make when they connect.
package main

import (
	"database/sql"
	"fmt"
	"time"

	"cirello.io/pglock"
	_ "github.com/lib/pq"
)

var settings message // the question "open"
var client *pglock.Client

func open(question message) message {
	settings = question
	node := question["nodes"].([]any)[0].(map[string]any)
	db, err := sql.Open("postgres", fmt.Sprintf("host=%v port=%v user=lockstorm dbname=postgres sslmode=disable "+
		"connect_timeout=2", node["host"], node["port"]))
	if err != nil {
		return outcome(false, err)
	}
	lease := time.Duration(question["lease_ms"].(float64) * 1e6)
	client, err = pglock.New(db, pglock.WithLeaseDuration(lease), pglock.WithHeartbeatFrequency(lease/4))
	for tries := 0; err == nil && tries < 3; tries++ { // others may make it at the same time
		if err = client.TryCreateTable(); err == nil {
			break
		}
	}
	return outcome(true, err)
}
