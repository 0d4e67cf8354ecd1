package dump

import (
	_ "embed" // functions.sh
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// source is a script that prints a file of a dump, or one for each of several names.
// A script that has nothing to say prints nothing, and then there is no file. What it
// writes to stderr is the reason if it fails.
type source struct {
	file  string // * stands for the name
	names string // script that prints a name per line; empty: one file
	run   string // script; $0 is kube-bootstrap, $1 the name
	clean func([]byte) []byte
	only  func(Target) bool // reports whether a dump of the host has the source; nil: each has it
}

func workloads(h Target) bool { return h.Workloads }

func objects(h Target) bool { return h.Objects }

// prelude precedes each script. The variables of the user must lead neither to
// another Docker nor to another cluster.
var prelude = `LC_ALL=C
PATH=$PATH:` + strings.Join(host.ProgramDirs, ":") + `
export LC_ALL PATH
unset DOCKER_HOST DOCKER_CONTEXT DOCKER_TLS DOCKER_TLS_VERIFY
state=` + host.StateDir + `
runs=` + host.LogDir + `
label=` + docker.OurLabel + `
system='` + strings.Join(systemNamespaces, " ") + `'
` + functions

// functions are shell functions that the scripts call.
//
//go:embed functions.sh
var functions string

// sources is all that a dump contains. Files that hold secrets on purpose are not
// among them: keys, kubeconfigs, the credentials of a registry, replaced files and
// manifests of the user, the configuration of containerd, audit logs.
var sources = slices.Concat(ofHost, ofDocker("docker", "main"), ofDocker("docker-bootstrap", "bootstrap"),
	ofPods, ofCluster)

var ofHost = []source{
	{file: "status.txt", run: `"$0" status || [ $? = 5 ]`}, // 5: something is missing
	{file: "status.json", run: `"$0" status -o json || [ $? = 5 ]`},
	{file: "version.txt", run: `"$0" version`},
	{file: "settings.yaml", run: `[ ! -e $state/config.yaml ] || "$0" config view --config $state/config.yaml`},
	{file: "certificates.txt", run: `! grep -qsE '^(master|worker)' $state/role || "$0" certs list`},
	{file: "system.txt", run: `uname -a; uptime; date; cat /etc/os-release || true`},
	{file: "processes.txt", run: processes, clean: redactProcesses},
	{file: "disk.txt", run: `df -h; df -i`},
	{file: "memory.txt", run: `free -m`},
	{file: "network.txt", run: `ip addr && ip route show table all && ip rule`},
	{file: "sockets.txt", run: `! has ss || ss -ltnp`},
	{file: "iptables.txt", run: `! has iptables-save || iptables-save`},
	{file: "nft.txt", run: `! has nft || nft list ruleset`},
	{file: "kernel.log", run: `dmesg`},
	{file: "daemon.json", run: `[ ! -e /etc/docker/daemon.json ] || cat /etc/docker/daemon.json`},
	{file: "files.txt", run: `for dir in $state /etc/kubernetes; do [ ! -d $dir ] || find $dir -maxdepth 3 ! -path $state/volumes/'*' -exec ls -ld {} +; done`},
	{file: "state/*", names: `cd $state 2>/dev/null || exit 0; ls -d ` + records + ` 2>/dev/null || true`,
		run: `cat "$state/$1"`},
	{file: "runs/*", names: `ls $runs 2>/dev/null || true`, run: `cat "$runs/$1"`},
	{file: "logs/*.log", names: units, run: unitLog},
}

// records are the files of host.StateDir that contain no secret.
const records = `role complete kept config.yaml versions.json owners.json made-dirs docker-bootstrap.json docker-restart.json docker-rebuild docker0-address ` +
	`containerd-before.json containerd-pods containerd-restart containerd-store cni-plugins.json other-cni.json kubelet-found.json kubelet-mount ` +
	`sysctls.json service-route flannel-modules.json etcd-version etcd-cluster certificate-lifetime.json renewing registry-files.json ` +
	`flannel/subnet.env agent/*.json balancer/*.json images/*.json`

const (
	units = `for unit in kube-bootstrap-agent kube-bootstrap-network docker-bootstrap docker-bootstrap-containerd docker containerd; do
	systemd || [ -e /var/log/$unit.log ] || continue
	echo $unit
done`
	// With Docker's log driver journald, the unit of Docker contains the output of
	// all containers.
	unitLog = `systemd || exec tail -n 5000 "/var/log/$1.log"
[ "$1" != docker ] || set -- "$1" -t dockerd -t systemd
journalctl -q --no-pager -n 5000 -u "$@"`
)

// ofDocker returns the sources of a Docker daemon, which the shell function cli asks.
// The commands and labels of the containers of users may contain passwords.
func ofDocker(dir, cli string) []source {
	const columns = `'table {{.ID}}\t{{.Names}}\t{{.Image}}\t{{.CreatedAt}}\t{{.Status}}\t{{.Networks}}\t{{.Ports}}'`
	all := []source{
		{file: "info.txt", run: `cli version && cli info && cli ps -a --format ` + columns +
			` && cli images && cli network ls`},
		{file: "containers.yaml",
			run:   `ids=$(cli ps -aq --filter label=$label) && { [ -z "$ids" ] || cli inspect $ids; }`,
			clean: redactObjects},
		{file: "containers/*.log", names: `cli ps -a --filter label=$label --format '{{.Names}}'`,
			run: `cli logs --tail 5000 "$1" 2>&1`},
		{
			file:  "containers/*.log",
			names: `list=$(cli ps -a --format '{{.Names}} {{.Label "'$label'"}}') && echo "$list" | sed -n 's/ $//p'`,
			run:   `cli logs --tail 5000 "$1" 2>&1`, only: workloads,
		},
	}
	for i := range all {
		all[i].file = dir + "/" + all[i].file
		all[i].names, all[i].run = strings.ReplaceAll(all[i].names, "cli ", cli+" "),
			strings.ReplaceAll(all[i].run, "cli ", cli+" ")
	}
	return all
}

var ofPods = []source{
	{file: "containerd.txt", run: containerd},
	{file: "manifests/*", names: `ls /etc/kubernetes/manifests 2>/dev/null || true`,
		run: `cat "/etc/kubernetes/manifests/$1"`, clean: redactObjects},
	{file: "pods/*", names: podLogs + `for one in $system; do logs "$one"; done`, run: podLog},
	{file: "pods/*", names: podLogs + `logs '*' | grep -vE "^($(echo $system | tr ' ' '|'))_" || true`, run: podLog,
		only: workloads},
}

const (
	// Docker starts a containerd of its own if the host has none.
	containerd = `! has ctr || for socket in /run/containerd/containerd.sock /run/docker/containerd/containerd.sock; do
	[ ! -S $socket ] || { ctr -a $socket -n k8s.io containers list && ctr -a $socket -n k8s.io tasks list; } || exit
done`
	// podLogs defines the function that lists the logs of the pods of a namespace.
	podLogs = `logs() { for log in /var/log/pods/${1}_*/*/*.log; do [ ! -e "$log" ] || echo "${log#/var/log/pods/}"; done; }
`
	podLog = `tail -n 2000 "/var/log/pods/$1"`
)

var ofCluster = []source{
	{file: "nodes.txt", run: `kubectl describe nodes`, only: objects},
	{file: "pods.txt", run: `kubectl get pods -A -o wide`, only: objects},
	{file: "events.txt", run: `kubectl get events -A --sort-by .metadata.creationTimestamp`, only: objects},
	// One process for all kinds: each would ask the API server for all that it knows.
	{file: "objects.yaml", run: `kinds=$(kubectl api-resources --verbs=list -o name) || exit
kinds=$(echo "$kinds" | grep -vi -e secret -e '^events.events' | paste -sd,)
[ -z "$kinds" ] || kubectl get "$kinds" -A -o yaml`, clean: redactObjects, only: objects},
}
