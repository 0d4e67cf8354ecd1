#!/bin/sh
# logged.sh LOG COMMAND...: runs a command and appends what it prints to a log. If
# the command fails, the end of the log is printed.
set -eu

log=$1
shift
mkdir -p "$(dirname "$log")"
printf '%s: %s\n' "$(date '+%F %T')" "$*" >>"$log"
status=0
"$@" >>"$log" 2>&1 || status=$?
[ "$status" = 0 ] || {
	tail -n 30 "$log" >&2
	echo "this failed: $*; all of its output is in $log" >&2
}
exit "$status"
