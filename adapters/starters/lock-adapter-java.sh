#!/bin/sh
# What lockstorm starts: the program of LockAdapter.java, with the libraries of a class path, which it compiles when it
# has changed.
run=${LOCKSTORM_SERVE:?is set by lockstorm, which starts this program}/java/run
exec "$run" "$(dirname "$(readlink -f "$0")")" "libraries/*" LockAdapter.java
