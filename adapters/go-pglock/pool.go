// The pool from which lock objects take their connections.
package main

import (
	"database/sql"
	"fmt"

	_ "github.com/lib/pq"
)

var settings message // the question "open"
var db *sql.DB

func init() {
	drop = func(on *lock) {
		if !on.granted {
			on.closed()
		}
		db.SetMaxIdleConns(0) // ends those that are in no lock object; the server ends those that hold
		db = connected()
	}
}

func connected() *sql.DB {
	node := settings["nodes"].([]any)[0].(map[string]any)
	made, _ := sql.Open("postgres", fmt.Sprintf("host=%v port=%v user=lockstorm dbname=postgres sslmode=disable "+
		"connect_timeout=2", node["host"], node["port"])) // connects when it is asked for a connection
	return made
}

func open(question message) message {
	settings = question
	db = connected()
	return message{"outcome": "ok"}
}
