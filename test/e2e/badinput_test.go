//go:build e2e

package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// bad is a mistake of the user, or a host that is not fit.
type bad struct {
	name    string
	make    string // how the host comes to be like that; nothing if only the command is wrong
	prefix  string // what stands before kube-bootstrap
	run     string // its arguments; $B is the bundle
	undo    string // puts the host right
	problem string // what preflight calls it; nothing if the settings alone tell
	follows string // the problem that is seen when the first is ignored
	says    string // part of what is told
	firm    bool   // the problem, or the one that follows, cannot be ignored
	code    string
}

const (
	stopDocker  = "systemctl stop docker.socket docker; "
	startDocker = "systemctl daemon-reload; systemctl reset-failed docker docker.socket; " +
		"systemctl start docker.socket docker; "
	dropIn = "/run/systemd/system/docker.service.d"
)

// oldDocker answers as an engine of version 20.10 does.
const oldDocker = stopDocker + `cat >/tmp/old <<'EOF'
while read -r line && [ ${#line} -gt 1 ]; do :; done # an answer before the question resets the connection
body='{"Version":"20.10.24","ApiVersion":"1.41","MinAPIVersion":"1.12","Os":"linux","Arch":"amd64"}'
printf 'HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\n'
printf 'Connection: close\r\nContent-Length: %s\r\n\r\n%s' ${#body} "$body"
EOF
rm -f /run/docker.sock
socat UNIX-LISTEN:/run/docker.sock,fork SYSTEM:'sh /tmp/old' >/dev/null 2>&1 & echo $! >/tmp/old.pid
until [ -S /run/docker.sock ]; do sleep 0.05; done`

var badInputs = []bad{
	{
		name: "not root", prefix: "setpriv --reuid 65534 --clear-groups", run: hosts.AsMaster, problem: "root",
		says: "you are not root", code: "3",
	},
	{
		name: "no Docker", make: stopDocker + "mv /usr/sbin/dockerd /usr/sbin/dockerd.away",
		undo: "mv /usr/sbin/dockerd.away /usr/sbin/dockerd; " + startDocker,
		run:  hosts.AsMaster, problem: "docker-missing", firm: true, says: "dockerd is not installed on this host",
		code: "3",
	},
	{
		name: "Docker stopped", make: stopDocker, undo: startDocker,
		run: hosts.AsMaster, problem: "docker-stopped", says: "start it: `systemctl start docker`", code: "3",
	},
	{
		name: "Docker too old", make: oldDocker,
		undo: "kill $(cat /tmp/old.pid); rm -f /tmp/old /tmp/old.pid /run/docker.sock; " + startDocker,
		run:  hosts.AsMaster, problem: "docker-version", says: "Docker 20.10.24 is too old; install 25.0 or later",
		code: "3",
	},
	{name: "worker without MASTER_IP", run: hosts.AsWorker, says: "masterIP: Required value", code: "2"},
	{
		name: "unreachable master", make: "ip route add unreachable 192.0.2.1",
		undo: "ip route del unreachable 192.0.2.1",
		run:  hosts.AsWorker + "--master-ip 192.0.2.1", problem: "control-plane-unreachable",
		says: "192.0.2.1:6443 cannot be reached", code: "3",
	},
	{
		name: "malformed version", run: hosts.AsMaster + " --kubernetes-version latest",
		says: "kubernetesVersion: Invalid value", code: "2",
	},
	{
		name: "malformed CIDR", run: hosts.AsMaster + " --flannel-network 10.1.0.0",
		says: "flannelNetwork: Invalid value", code: "2",
	},
	{
		name: "malformed address", run: hosts.AsMaster + " --ip-address 10.1", says: "ipAddress: Invalid value",
		code: "2",
	},
	{
		name: "network too small", run: hosts.AsMaster + " --flannel-network 10.1.0.0/24", says: "is too small",
		code: "2",
	},
	{name: "unknown architecture", run: hosts.AsMaster + " --arch sparc", says: "arch: Unsupported value", code: "2"},
	{
		name: "architecture of another machine", run: hosts.AsMaster + " --arch s390x", problem: "arch",
		follows: "bundle", firm: true, says: "arch: s390x", code: "3",
	},
	{
		name: "unknown field",
		make: `printf 'apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\nflannelNetwrk: 10.7.0.0/16\n' ` +
			`>/tmp/bad.yaml`, undo: "rm /tmp/bad.yaml",
		run:  hosts.AsMaster + " --config /tmp/bad.yaml",
		says: "/tmp/bad.yaml:3: flannelNetwrk: unknown field, did you mean flannelNetwork?", code: "2",
	},
	{
		name: "overlap with a route", make: "ip route add 10.1.77.0/24 dev eth0",
		undo: "ip route del 10.1.77.0/24 dev eth0",
		run:  hosts.AsMaster, problem: "network-overlap",
		says: "flannelNetwork: 10.1.0.0/16 overlaps the route to 10.1.77.0/24 on eth0", code: "3",
	},
	{
		name: "no such interface", run: hosts.AsMaster + " --net-interface eth7", problem: "net-interface",
		says: "eth7: this interface does not exist", code: "3",
	},
	{
		name: "not an address of this host", run: hosts.AsMaster + " --ip-address 192.0.2.7", problem: "ip-address",
		says: "192.0.2.7: no interface has this address", code: "3",
	},
	{
		name: "port taken", make: "socat TCP-LISTEN:6443,fork /dev/null >/dev/null 2>&1 & echo $! >/tmp/port.pid; " +
			"until ss -Hltn sport = 6443 | grep -q .; do sleep 0.05; done",
		undo: "kill $(cat /tmp/port.pid); rm /tmp/port.pid",
		run:  hosts.AsMaster, problem: "port-6443", says: "port 6443 is in use", code: "3",
	},
	{
		name: "flag in Docker's unit",
		make: "mkdir -p " + dropIn +
			`; printf '[Service]\nExecStart=\nExecStart=/usr/sbin/dockerd -H fd:// --mtu=1400 $DOCKER_OPTS\n' >` +
			dropIn + "/mtu.conf; systemctl daemon-reload; systemctl restart docker",
		undo: "rm -r " + dropIn + "; systemctl daemon-reload; systemctl reset-failed docker; systemctl restart docker",
		run:  hosts.AsMaster, problem: "docker-flags", says: "Docker is started with --mtu 1400", code: "3",
	},
	{
		name: "Docker with mounts of its own",
		make: "mkdir -p " + dropIn + `; printf '[Service]\nMountFlags=slave\n' >` + dropIn +
			"/mounts.conf; systemctl daemon-reload; systemctl restart docker",
		undo: "rm -r " + dropIn + "; systemctl daemon-reload; systemctl reset-failed docker; systemctl restart docker",
		run:  hosts.AsMaster, problem: "docker-unit", says: "/var/lib/kubelet is not shared", code: "3",
	},
	{
		name: "daemon.json that is none", make: "mkdir -p /etc/docker; echo '{oops' >/etc/docker/daemon.json",
		undo: "rm /etc/docker/daemon.json",
		run:  hosts.AsMaster, problem: "daemon-json", says: "/etc/docker/daemon.json is not a JSON object", code: "3",
	},
	{
		name: "no space", make: "mount -t tmpfs -o size=1g none /var/lib/containerd",
		undo: "umount /var/lib/containerd",
		run:  hosts.AsMaster, problem: "disk-space",
		says: "/var/lib/containerd has 1024 MiB free, 2048 MiB are required", code: "3",
	},
	{
		name: "no containerd", make: "mv /usr/bin/containerd /usr/bin/containerd.away",
		undo: "mv /usr/bin/containerd.away /usr/bin/containerd",
		run:  hosts.AsMaster, problem: "containerd-missing", firm: true,
		says: "containerd is not installed on this host", code: "3",
	},
	{
		name: "no iptables", make: "mv /usr/sbin/iptables /usr/sbin/iptables.away",
		undo: "mv /usr/sbin/iptables.away /usr/sbin/iptables",
		run:  hosts.AsMaster, problem: "program-missing", says: "this host has no program iptables", code: "3",
	},
	{
		name: "name of the host", make: "echo web_01 >/proc/sys/kernel/hostname",
		undo: "cat /etc/hostname >/proc/sys/kernel/hostname",
		run:  hosts.AsMaster, problem: "host-name", says: "the name of this host, web_01, must be lower-case letters",
		code: "3", firm: true,
	},
	{
		name: "no such bundle", run: "master --bundle /nowhere.tar.zst", problem: "bundle", firm: true,
		says: "/nowhere.tar.zst", code: "3",
	},
	{
		name: "static pods of another cluster",
		make: "mkdir -p /etc/kubernetes/manifests; touch /etc/kubernetes/manifests/x.yaml",
		undo: "rm -r /etc/kubernetes",
		run:  hosts.AsMaster, problem: "role", says: "static pods of another cluster", code: "3",
	},
	{
		name: "another run", prefix: "flock /run/kube-bootstrap.lock", run: hosts.AsMaster,
		undo: "rm -f /run/kube-bootstrap.lock", says: "another run is in progress", code: "4",
	},
}

// swapping is bad only where the kubelet cannot keep pods out of the swap.
var swapping = bad{
	name: "swap",
	make: `printf 'Filename Type Size Used Priority\n/swap file 1048572 0 -2\n' >/tmp/swaps; ` +
		`mount --bind /tmp/swaps /proc/swaps`, undo: "umount /proc/swaps; rm /tmp/swaps",
	run: hosts.AsMaster, problem: "swap", says: "swap is on", code: "3",
}

// badInput holds every mistake that can be made on a bare host against what
// is told about it, and makes sure that the host stays as it was.
func badInput(t *testing.T, bare hosts.Machine, bundle string) {
	all := badInputs
	if bare.Sh(t, "stat -fc %T /sys/fs/cgroup") != "cgroup2fs" {
		all = append(all, swapping)
	}
	before := bare.SettledWorld(t)
	for _, b := range all {
		t.Run(b.name, func(t *testing.T) { b.tryOn(t, bare, bundle) })
	}
	t.Run("all at once", func(t *testing.T) { allAtOnce(t, bare, bundle) })
	bare.SameWorld(t, "what was refused", before)
}

func (b bad) tryOn(t *testing.T, m hosts.Machine, bundle string) {
	defer m.Sh(t, b.undo)
	m.Sh(t, b.make)
	code, says := m.Ask(t, b.prefix, b.run, bundle)
	if code != b.code || !strings.Contains(says, b.says) {
		t.Errorf("exit code %s, want %s and %q:\n%s", code, b.code, b.says, says)
	}
	if b.problem == "" {
		return
	}
	if names := hosts.ProblemNames(says); len(names) != 1 || names[0] != b.problem {
		t.Errorf("problems %q, want %q:\n%s", names, b.problem, says)
	}
	if b.problem == "root" {
		return // there is no going on without
	}
	ignored := b.problem
	if b.follows != "" {
		if _, says := m.Ask(t, "", b.run+" --ignore-preflight "+ignored,
			bundle); !slices.Equal(hosts.ProblemNames(says), []string{
			b.follows,
		}) {
			t.Errorf("with --ignore-preflight %s: not %q:\n%s", ignored, b.follows, says)
		}
		ignored = b.follows
	}
	if b.firm {
		if code, says := m.Ask(t, "", b.run+" --ignore-preflight "+ignored, bundle); code != "2" ||
			!strings.Contains(says, "this problem cannot be ignored") {
			t.Errorf("with --ignore-preflight %s: exit code %s:\n%s", ignored, code, says)
		}
		return
	}
	if code, says := m.Ask(t, "", "preflight "+b.run+" --ignore-preflight "+ignored, bundle); code != "0" {
		t.Errorf("with --ignore-preflight %s: exit code %s:\n%s", ignored, code, says)
	}
}

// allAtOnce makes several mistakes together: all are told, and nothing else.
func allAtOnce(t *testing.T, m hosts.Machine, bundle string) {
	missing := map[string]bool{"net-interface": true}
	for _, b := range badInputs {
		switch b.problem {
		case "network-overlap", "port-6443", "daemon-json", "disk-space":
			defer m.Sh(t, b.undo)
			m.Sh(t, b.make)
			missing[b.problem] = true
		}
	}
	code, says := m.Ask(t, "", hosts.AsMaster+" --net-interface eth7", bundle)
	names := hosts.ProblemNames(says)
	for _, name := range names {
		if !missing[name] {
			t.Errorf("tells of %s, which is not wrong, or twice", name)
		}
		delete(missing, name)
	}
	if code != "3" || len(missing) > 0 {
		t.Errorf("exit code %s, and nothing about %v:\n%s", code, missing, says)
	}
	ignore := " --ignore-preflight " + strings.Join(names, ",")
	if code, says := m.Ask(t, "", "preflight "+hosts.AsMaster+" --net-interface eth7"+ignore, bundle); code != "0" {
		t.Errorf("all of them ignored: exit code %s:\n%s", code, says)
	}
}
