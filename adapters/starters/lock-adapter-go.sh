#!/bin/sh
# What lockstorm starts: the program of lock-adapter.go, which it builds together with its own serve.go.
run=${LOCKSTORM_SERVE:?is set by lockstorm, which starts this program}/go/run
exec "$run" "$(dirname "$(readlink -f "$0")")" lock-adapter.go
