package faults

import (
	"slices"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

const (
	master = "master"
	worker = "worker"
	each   = "each"

	state     = "/var/lib/kube-bootstrap/"
	bootstrap = "docker -H unix:///run/docker-bootstrap.sock "

	sec = time.Second
)

// All is the table: what breaks, on which host, what repairs it, and how
// long that may take.
func All() []fault {
	all := slices.Concat(containerFaults, processFaults, networkFaults)
	return slices.Concat(all, killedRepairs(all), recordFaults(), fileFaults(), hostFaults, roughFaults, lastFaults)
}

// killedRepairs are the quick faults again, with the agent killed while it
// repairs them: its next start finishes.
func killedRepairs(all []fault) (killed []fault) {
	for _, f := range all {
		if f.quick && f.Name != "agent killed" {
			f.Name, f.limit, f.quick = f.Name+", and the agent during its repair", f.limit+5*sec, false
			f.do += "; for after in 0.1 0.3 0.5 0.8 1.2; do sleep $after; " +
				"systemctl kill -s KILL kube-bootstrap-agent; done"
			killed = append(killed, f)
		}
	}
	return killed
}

// Containers and images that are gone.
var containerFaults = []fault{
	{
		Name: "docker system prune", on: each,
		do: "docker system prune -af --volumes; " + bootstrap + "system prune -af --volumes", repair: byAgent,
		limit: 10 * sec,
	},
	{Name: "kubelet removed", on: each, do: "docker rm -f kubelet", repair: byAgent, limit: 10 * sec, quick: true},
	{
		Name: "kubelet stopped", on: worker, do: "docker stop -t 1 kubelet", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{
		Name: "all containers stopped", on: worker, do: "docker stop -t 2 $(docker ps -q); docker start probe",
		repair: byAgent, limit: 10 * sec,
	},
	{
		Name: "all containers stopped, then a boot", on: worker, do: "docker stop -t 2 $(docker ps -q)", repair: byBoot,
		limit: 30 * sec,
	},
	{
		Name: "flanneld removed", on: each, do: bootstrap + "rm -f flannel", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{Name: "etcd stopped", on: master, do: bootstrap + "stop -t 1 etcd", repair: byAgent, limit: 15 * sec, quick: true},
	{Name: "etcd removed", on: master, do: bootstrap + "rm -f etcd", repair: byAgent, limit: 15 * sec},
	{Name: "images of containerd removed", on: each, do: removeImages, repair: byAgent, limit: 20 * sec},
	{
		Name: "images of containerd removed, then a boot without network", on: worker, do: removeImages,
		cause: bootWithoutNetwork, repair: byAgent, limit: 40 * sec,
	},
	{
		Name: "images of Docker removed", on: worker,
		do: "docker rm -f kubelet; docker images --format '{{.Repository}}:{{.Tag}}' | grep -v -e probe -e none | " +
			"xargs docker rmi -f || true", repair: byAgent, limit: 20 * sec,
	},
}

// removeImages leaves the probe's, which no bundle has.
const removeImages = "ctr -n k8s.io images ls -q | grep -v probe | xargs ctr -n k8s.io images rm"

// Programs that are killed or restarted.
var processFaults = []fault{
	{Name: "docker restarted", on: each, do: "systemctl restart docker", repair: byAgent, limit: 30 * sec},
	{Name: "containerd restarted", on: each, do: "systemctl restart containerd", repair: byAgent, limit: 30 * sec},
	{
		Name: "docker-bootstrap restarted", on: each, do: "systemctl restart docker-bootstrap", repair: byAgent,
		limit: 30 * sec,
	},
	{
		Name: "docker and containerd stopped and started", on: each,
		do:     "systemctl stop docker.socket docker containerd && systemctl daemon-reload && systemctl start docker",
		repair: byAgent, limit: 30 * sec,
	},
	{
		Name: "docker.socket restarted", on: each,
		do: "systemctl stop docker && systemctl restart docker.socket && docker version", repair: byAgent,
		limit: 30 * sec,
	},
	{Name: "dockerd killed", on: each, do: "kill -9 $(cat /run/docker.pid)", repair: byAgent, limit: 20 * sec},
	{
		Name: "dockerd killed, then a boot", on: worker, do: "kill -9 $(cat /run/docker.pid)", repair: byBoot,
		limit: 30 * sec,
	},
	{
		Name: "bootstrap dockerd killed", on: each, do: "kill -9 $(cat /run/docker-bootstrap.pid)", repair: byAgent,
		limit: 20 * sec,
	},
	{Name: "containerd killed", on: each, do: "pkill -9 -x containerd", repair: byAgent, limit: 20 * sec},
	{Name: "flanneld killed", on: each, do: "pkill -9 -x flanneld", repair: byAgent, limit: 10 * sec, quick: true},
	{Name: "etcd killed", on: master, do: "pkill -9 -x etcd", repair: byAgent, limit: 15 * sec, quick: true},
	{Name: "kubelet killed", on: each, do: "pkill -9 -x kubelet", repair: byAgent, limit: 10 * sec, quick: true},
	{Name: "API server killed", on: master, do: "pkill -9 -x kube-apiserver", repair: byAgent, limit: 20 * sec},
	{Name: "kube-proxy killed", on: each, do: "pkill -9 -x kube-proxy", repair: byAgent, limit: 10 * sec, quick: true},
	{
		Name: "agent killed", on: each, do: "systemctl kill -s KILL kube-bootstrap-agent", repair: byAgent,
		limit: 10 * sec, quick: true,
	},
}

// What the kernel passes packets by.
var networkFaults = []fault{
	{
		Name: "iptables flushed", on: each, do: flushing("iptables -F; iptables -t nat -F; iptables -X"),
		repair: byAgent, limit: 20 * sec, quick: true,
	},
	{
		Name: "nft ruleset flushed", on: each, do: flushing("nft flush ruleset"), repair: byAgent, limit: 20 * sec,
		quick: true,
	},
	// the fourth restart of kube-proxy within a minute: the kubelet may back off
	{
		Name: "Services' chain flushed", on: each, do: "iptables -t nat -F KUBE-SERVICES", repair: byAgent,
		limit: 30 * sec,
	},
	{
		Name: "jump to DOCKER-USER deleted", on: each, do: "iptables -D FORWARD -j DOCKER-USER", repair: byAgent,
		limit: 10 * sec, quick: true,
	},
	{Name: "Docker's nat chain flushed", on: each, do: "iptables -t nat -F DOCKER", repair: byAgent, limit: 10 * sec},
	{
		Name: "own firewall rule deleted", on: each, do: "iptables -F DOCKER-USER", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{
		Name: "flannel's rules deleted", on: each, do: "iptables -F FLANNEL-FWD; iptables -t nat -F FLANNEL-POSTRTG",
		repair: byAgent, limit: 10 * sec,
	},
	{Name: "flannel.1 deleted", on: each, do: "ip link del flannel.1", repair: byAgent, limit: 10 * sec, quick: true},
	{
		Name: "flannel.1 down", on: worker, do: "ip link set flannel.1 down", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{
		Name: "docker0 without address", on: each, do: "ip addr flush dev docker0", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{Name: "docker0 down", on: worker, do: "ip link set docker0 down", repair: byAgent, limit: 10 * sec},
	{
		Name: "routes of flannel flushed", on: each, do: "ip route flush dev flannel.1", repair: byAgent,
		limit: 10 * sec, quick: true,
	},
	{
		Name: "forwarding database of flannel flushed", on: each,
		do: "for mac in $(bridge fdb show dev flannel.1 | cut -d' ' -f1); do bridge fdb del $mac dev flannel.1; " +
			"done; ip neigh flush nud permanent dev flannel.1", repair: byAgent, limit: 10 * sec,
	},
	{
		Name: "forwarding off", on: each, do: "sysctl -w net.ipv4.ip_forward=0", repair: byAgent, limit: 10 * sec,
		quick: true,
	},
	{
		Name: "forwarding off on docker0", on: worker,
		do: "sysctl -w net.ipv4.conf.docker0.forwarding=0 net.ipv4.conf.flannel/1.forwarding=0", repair: byAgent,
		limit: 10 * sec,
	},
	{
		Name: "reverse path filter strict", on: worker,
		do: "sysctl -w net.ipv4.conf.all.rp_filter=1 net.ipv4.conf.flannel/1.rp_filter=1", repair: byAgent,
		limit: 10 * sec,
	},
	{Name: "another subnet", on: worker, cause: otherSubnet, repair: byAgent, limit: 20 * sec},
}

// Records that kube-bootstrap can make again. Each is emptied, then filled with
// garbage.
func recordFaults() []fault {
	return slices.Concat(
		damaged("versions.json", each, state+"versions.json", byRerun, ""),
		damaged("owners.json", each, state+"owners.json", byRerun, ""),
		damaged("docker-bootstrap.json", each, state+"docker-bootstrap.json", byRerun, ""),
		damaged("cni-plugins.json", each, state+"cni-plugins.json", byRerun, ""),
		damaged("images of containerd", each, state+"images/containerd.json", byRerun, ""),
		damaged("control-planes.json", each, state+"balancer/control-planes.json", byRerun, ""),
		damaged("handover.json", worker, state+"handover.json", byRerun, ""),
		damaged("role", each, state+"role", byRerun, ""),
		damaged("subnet.env", each, state+"flannel/subnet.env", byRerun, ""),
		damaged("config.yaml", each, state+"config.yaml", byRemedy, "[settings-lost]"),
		damaged("containerd-before.json", worker, state+"containerd-before.json", byRerun, ""),
		damaged("sysctls.json", worker, state+"sysctls.json", byRerun, ""),
		damaged("kubelet-found.json", worker, state+"kubelet-found.json", byRerun, ""),
		damaged("made-dirs", worker, state+"made-dirs", byRerun, ""),
		damaged("docker0-address", worker, state+"docker0-address", byRerun, ""),
	)
}

// Files of the host that are damaged or deleted.
func fileFaults() []fault {
	const pki, conf = "/etc/kubernetes/pki/", "/etc/kubernetes/"
	return slices.Concat(
		damaged("bootstrap unit", each, "/etc/systemd/system/docker-bootstrap.service", byRerun, ""),
		damaged("kubelet's config", each, "/var/lib/kubelet/config.yaml", byRerun, ""),
		damaged("CNI config", each, "/etc/cni/net.d/10-kube-bootstrap.conflist", byRerun, ""),
		damaged("manifest of the scheduler", master, conf+"manifests/kube-scheduler.yaml", byRerun, ""),
		damaged("admin.conf", master, conf+"admin.conf", byRerun, ""),
		damaged("controller-manager.conf", master, conf+"controller-manager.conf", byRerun, ""),
		damaged("scheduler.conf", master, conf+"scheduler.conf", byRerun, ""),
		damaged("kubelet.conf of the master", master, conf+"kubelet.conf", byRerun, ""),
		damaged("apiserver.crt", master, pki+"apiserver.crt", byRerun, ""),
		damaged("front-proxy-client.crt", master, pki+"front-proxy-client.crt", byRerun, ""),
		damaged("apiserver.key", master, pki+"apiserver.key", byRerun, ""),
		damaged("kubelet.conf of the worker", worker, conf+"kubelet.conf", byRerun, ""),
		damaged("ca.crt of the worker", worker, pki+"ca.crt", byRerun, ""),
		damaged("daemon.json", each, "/etc/docker/daemon.json", byRemedy, "/etc/docker/daemon.json"),
		damaged("config of containerd", each, "/etc/containerd/config.toml", byRemedy, "/etc/containerd/config.toml"),
		[]fault{
			{
				Name: "keys in daemon.json deleted", on: each,
				do: `echo '{"log-level": "warn"}' >/etc/docker/daemon.json && systemctl restart docker && ` +
					`grep -q log-level /etc/docker/daemon.json`, repair: byAgent, limit: 30 * sec,
			},
			{
				Name: "etc-kubernetes removed", on: master,
				do:     "rm -rf /var/tmp/saved && cp -a /etc/kubernetes /var/tmp/saved && rm -rf /etc/kubernetes",
				repair: byRemedy, limit: 60 * sec, says: "[cluster-identity]",
				fix: "rm -rf /etc/kubernetes && mv /var/tmp/saved /etc/kubernetes",
			},
		},
	)
}

// damaged empties a file, and fills it with garbage in the next row. A remedy
// that is named is to put a copy back.
func damaged(what, on, path, repair, says string) []fault {
	row := func(how, write string) fault {
		return fault{Name: what + " " + how, on: on,
			do:     "rm -rf /var/tmp/saved && cp -a " + path + " /var/tmp/saved && " + write + " >" + path,
			repair: repair, limit: 30 * sec, says: says, fix: "cp -a /var/tmp/saved " + path,
			check: "[ -s " + path + " ] && ! grep -aq garbage " + path}
	}
	return []fault{row("emptied", ":"), row("garbage", `printf '\000\377{{garbage: [\n"x'`)}
}

// Hosts and their disks.
var hostFaults = []fault{
	{Name: "reboot", on: each, repair: byBoot, limit: 60 * sec},
	{
		Name: "docker-bootstrap disabled, then a boot", on: each, do: "systemctl disable docker-bootstrap",
		cause: reboot, repair: byRerun, limit: 30 * sec,
	},
	{Name: "control plane killed five times", on: master, cause: killedFiveTimes, repair: byAgent, limit: 30 * sec},
	{Name: "partition of 100 s", on: worker, cause: partition, repair: byAgent, limit: 30 * sec},
	{
		Name: "partition of 200 s with five kills of the control plane", on: worker, cause: partitionAndKills,
		repair: byAgent, limit: 15 * sec,
	},
	{
		Name: "etcd's disk full", on: master, do: fullEtcd, repair: byRemedy, limit: 30 * sec, says: "[etcd-disk]",
		fix: freeEtcd, end: leaveSmallDisk,
	},
	{
		Name: "garbage in etcd's WAL", on: master, do: garbageWAL, repair: byRemedy, limit: 60 * sec,
		says: "[etcd-data]", fix: soundEtcd,
	},
	{
		Name: "etcd's WAL cut", on: master, do: cutWAL, repair: byRemedy, limit: 60 * sec, says: "[etcd-data]",
		fix: soundEtcd,
	},
	{
		Name: "etcd at its quota", on: master, cause: alarm(etcdserverpb.AlarmType_NOSPACE), repair: byRerun,
		limit: 30 * sec, says: "[etcd-space]",
	},
	{
		Name: "etcd's data corrupt", on: master, do: copyEtcd, cause: alarm(etcdserverpb.AlarmType_CORRUPT),
		repair: byRemedy, limit: 60 * sec, says: "[etcd-data]", fix: soundEtcd,
	},
}

// What does not break a host but hinders it, for a minute.
var roughFaults = []fault{
	{Name: "a fifth of all packets lost", on: worker, cause: loss, repair: byAgent, limit: 30 * sec},
	{Name: "300 ms latency", on: worker, cause: latency, repair: byAgent, limit: 30 * sec},
	{Name: "memory exhausted", on: worker, cause: noMemory, repair: byAgent, limit: 60 * sec},
	{
		Name: "disk full", on: worker, cause: onSmallDisk("dd if=/dev/zero of=/var/lib/filler bs=1M; "+
			"kube-bootstrap status | grep -F '[disk-space]'", "rm /var/lib/filler"), end: onLargeDisk, repair: byAgent,
		limit: 60 * sec,
	},
	{
		Name: "no inodes left", on: worker, cause: onSmallDisk("mkdir /var/lib/filler; cd /var/lib/filler; "+
			"seq 100000 | xargs touch; kube-bootstrap status | grep -F '[disk-inodes]'", "rm -rf /var/lib/filler"),
		end: onLargeDisk, repair: byAgent, limit: 60 * sec,
	},
}

// Turndown on damaged hosts. The worker joins again afterwards.
var lastFaults = []fault{
	{
		Name: "turndown with the bootstrap Docker dead", on: worker,
		do:    "systemctl kill -s KILL docker-bootstrap; systemctl mask --runtime --now docker-bootstrap",
		cause: leaveAndJoin, repair: byAgent, limit: 60 * sec,
	},
	{
		Name: "turndown with garbage in the records", on: worker, do: garbageRecords, cause: leaveAndJoin,
		repair: byAgent, limit: 60 * sec,
	},
	{
		Name: "turndown with a container that it does not know", on: worker,
		do: "docker run -d --name stray --label kube-bootstrap.dev/owner=stray " + hosts.ProbeImage +
			" /probe serve",
		cause: refuseToLeave, repair: byAgent, limit: 60 * sec,
	},
	{
		Name: "turndown without records", on: worker, do: noRecords, cause: leaveAndJoin, repair: byAgent,
		limit: 60 * sec,
	},
	{
		Name: "turndown of the control plane with garbage in the records", on: master, do: garbageRecords,
		cause: leaveAsMaster, repair: byAgent, limit: 60 * sec,
	},
	{
		Name: "turndown of the control plane without records", on: master, do: noRecords, cause: leaveAsMaster,
		repair: byAgent, limit: 60 * sec,
	},
}

// flushing runs a command that flushes the firewall, and restores the rules of
// the embedded DNS of the engine in which the test host is a container: that
// engine owns them, and nothing inside of the test host could restore them.
func flushing(command string) string {
	return "dns=$(iptables-save -t nat | grep -E '127\\.0\\.0\\.11|^:DOCKER_(OUTPUT|POSTROUTING)'); " + command +
		`; if [ -n "$dns" ]; then printf '*nat\n%s\nCOMMIT\n' "$dns" | iptables-restore --noflush; fi`
}
