module lockstorm/adapters/go-pglock

go 1.26.0

require (
	github.com/allisson/go-pglock/v3 v3.1.0
	github.com/lib/pq v1.10.9
)
