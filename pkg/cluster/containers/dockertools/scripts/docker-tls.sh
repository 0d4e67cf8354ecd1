#!/bin/sh
# docker-tls.sh open|close DIR PORT: open Docker's TLS port on this host, now and
# after a reboot, or close it and end its connections. What is built or loaded by way of Docker is copied into containerd's
# k8s.io namespace, from which pods run: Docker keeps its images elsewhere. The port may answer before the watch of
# events begins, and Docker keeps the last events: --since includes what was built in between.
set -e
if [ "$1" = close ]; then
	[ -d "$2" ] || exit 0
	touch "$2/closed" # the copies of images go on
	for _ in $(seq 100); do # until they have ended
		pkill -f "^socat OPENSSL-LISTEN:$3," || exit 0
		sleep 0.1
	done
	echo "Docker's port $3 is still open: its socat does not end" >&2
	exit 1
fi
rm -f "$2/closed"
cat >/usr/local/sbin/docker-tls <<SCRIPT
#!/bin/sh
trap 'trap - EXIT TERM; kill 0' EXIT TERM
since=\$(date +%s)
while :; do
	docker events --since "\$since" --filter type=image --filter event=tag --filter event=load --format '{{.Actor.ID}}' | while read -r id; do
		refs=\$(docker image inspect --format '{{join .RepoTags " "}}' "\$id") && [ -n "\$refs" ] || continue
		docker save \$refs | ctr -n k8s.io images import - >/dev/null
	done
	since=\$(date +%s)
	sleep 1 # Docker restarts
done &
while [ ! -e $2/closed ]; do
	socat OPENSSL-LISTEN:$3,reuseaddr,fork,cert=$2/server.pem,cafile=$2/ca.pem,verify=1,openssl-min-proto-version=TLS1.2 UNIX-CONNECT:/run/docker.sock
	sleep 1
done
wait
SCRIPT
chmod 755 /usr/local/sbin/docker-tls
if [ -d /run/systemd/system ]; then
	cat >/etc/systemd/system/docker-tls.service <<UNIT
[Unit]
Description=Docker for holders of a certificate
After=docker.service
[Service]
ExecStart=/usr/local/sbin/docker-tls
Restart=always
[Install]
WantedBy=multi-user.target
UNIT
	systemctl enable -q docker-tls
	systemctl daemon-reload
	systemctl restart docker-tls
else
	grep -q '^dt:' /etc/inittab || echo "dt:2345:respawn:/usr/local/sbin/docker-tls" >>/etc/inittab
	telinit q
fi
