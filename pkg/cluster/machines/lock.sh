# Takes the lock of a machine. $1 is the file, $2 the holder, for the error of others, $3 the seconds of
# silence of the client that end the lock. The scripts that follow get the other arguments. A system
# without Linux gets no lock: it cannot become a node.
lock=$1 holder=$2 silence=$3
shift 3
umask 077
if [ "$(uname -s)" = Linux ]; then
	command -v flock >/dev/null || { echo "the program flock is missing: install util-linux" >&2; exit 1; }
	while :; do
		exec 9>>"$lock"
		flock -n 9 || { echo "held by $(cat "$lock")" >&2; exit 75; }
		[ "$lock" -ef /proc/$$/fd/9 ] && break # the former holder has removed the file
	done
	echo "$holder" >"$lock"
	trap 'rm -f "$lock"' EXIT
	trap 'exit 0' HUP INT TERM
fi
