# Packs what explains this node to stdout. What fails is left out: a node that
# is ill is what this is for.
out=$(mktemp -d /var/lib/dump-XXXXXX)
trap 'rm -rf "$out"' EXIT
cd "$out" || exit 1
# All at the same time: most of them wait.
keep() { file=$1; shift; "$@" >"$file" 2>&1 </dev/null & }

keep status.txt kube-bootstrap status
keep version.txt kube-bootstrap version
keep settings.yaml cat /var/lib/kube-bootstrap/config.yaml
# The arguments of other programs may contain passwords.
keep processes.txt sh -c 'ps -eo pid,ppid,etime,rss,comm,args | awk "{ if (\$5 !~ /^(kube|etcd|flanneld|docker|containerd|coredns|COMMAND)/) NF = 5; print }"'
keep disk.txt df -h
keep memory.txt free -m
keep network.txt sh -c 'ip -br addr; ip route; ip rule; ss -ltnp'
keep iptables.txt iptables-save
keep nft.txt nft list ruleset
keep daemon.json cat /etc/docker/daemon.json
keep docker.txt sh -c 'docker version; docker info; docker ps -a; docker images'
keep journal.log journalctl --no-pager -n 5000
keep kernel.log dmesg
mkdir containers pods
for socket in /run/docker.sock /run/docker-bootstrap.sock; do
	for name in $(docker -H "unix://$socket" ps -a --format '{{.Names}}' 2>/dev/null); do
		keep "containers/$name.log" docker -H "unix://$socket" logs --tail 5000 "$name"
	done
done
for log in /var/log/pods/*/*/*.log; do
	[ -e "$log" ] && keep "pods/$(echo "${log#/var/log/pods/}" | tr / _)" tail -n 2000 "$log"
done
if [ "$1" = true ]; then
	kubectl() { docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 20s "$@"; }
	keep nodes.txt kubectl describe nodes
	# One process for all kinds: each would ask the API server for all that it knows.
	kinds=$(kubectl api-resources --verbs=list -o name 2>/dev/null | grep -vx -e secrets -e events.events.k8s.io | paste -sd,)
	kubectl get "$kinds" -A -o yaml >objects.yaml 2>objects-error.txt </dev/null &
fi
wait
tar -c .
