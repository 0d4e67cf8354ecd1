# Holds the lock of a machine as long as the connection lives: the client sends a line every few
# seconds. $1 is the file, $2 the holder, for the error of others, $3 the seconds of silence.
umask 077
while :; do
	exec 9>>"$1"
	flock -n 9 || { echo "held by $(cat "$1")" >&2; exit 75; }
	[ "$1" -ef /proc/$$/fd/9 ] && break # the former holder has removed the file
done
echo "$2" >"$1"
trap 'rm -f "$1"' EXIT
trap 'exit 0' HUP INT TERM
echo locked
while [ -n "$(timeout "$3" head -c 1)" ]; do :; done
