i=0
until [ -S /var/run/docker.sock ] && curl -sf --max-time 20 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null; do
	i=$((i+1)); [ $i -lt "$1" ] || { echo "Docker does not answer on this host" >&2; exit 1; }
	sleep 0.05
done
[ ! -d /run/systemd/system ] || [ "$(systemctl is-system-running --wait)" != stopping ] || exit 143
