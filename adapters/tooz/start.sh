#!/bin/sh
# tooz's locks, by the driver that the argument names, with the Python that runs lockstorm.
here=$(dirname "$(readlink -f "$0")")
export PYTHONPATH="$here/../../harness${PYTHONPATH:+:$PYTHONPATH}" PYTHONWARNINGS=ignore::DeprecationWarning
exec "${LOCKSTORM_PYTHON:-$here/../../.venv/bin/python}" "$here/adapter.py" "$@"
