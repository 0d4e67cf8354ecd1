[ ! -d /run/systemd/system ] || case $(systemctl is-system-running) in
initializing|starting) exit 1;;
stopping) exit 143;;
esac
[ -S /var/run/docker.sock ] && curl -sf --max-time 5 --unix-socket /var/run/docker.sock http://docker/_ping >/dev/null
