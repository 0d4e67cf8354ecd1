#!/bin/sh
# Starts Docker and waits until it answers: through the init system where one
# runs, by hand where none does (a container, a build machine).
set -eu

log=${DOCKER_LOG:-/var/log/dockerd.log}

answers() {
	docker version >/dev/null 2>&1
}

start() {
	if [ -d /run/systemd/system ]; then
		systemctl start docker
	elif [ "$(cat /proc/1/comm)" = init ] && command -v service >/dev/null; then
		service docker start
	else
		echo "no init system runs here: starting dockerd by hand, log in $log" >&2
		setsid dockerd >>"$log" 2>&1 </dev/null &
	fi
}

answers && exit 0
command -v dockerd >/dev/null || {
	echo "dockerd is not installed; run scripts/install-tools.sh" >&2
	exit 1
}
start
for _ in $(seq 300); do
	answers && exit 0
	sleep 0.1
done
echo "Docker does not answer after 30 seconds; the end of $log:" >&2
tail -n 20 "$log" >&2 2>/dev/null || true
exit 1
