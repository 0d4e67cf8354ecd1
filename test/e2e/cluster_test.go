//go:build e2e

package e2e

import (
	"strings"
	"testing"
)

// TestCluster walks through the life of a cluster of two hosts.
func TestCluster(t *testing.T) {
	made := hosts(t, "docker-28.5", "10.193.1.0/24", "e2e-a", "e2e-b")
	life(t, made, harm)
	up(t, made[0], made[1], "")
	t.Run("reboots", func(t *testing.T) { reboots(t, made[0], made[1]) })
	t.Run("packets after reboots", func(t *testing.T) { packets(t, made[0], made...) })
}

// TestBadInput runs commands with invalid input on a bare host.
func TestBadInput(t *testing.T) {
	badInput(t, hosts(t, "docker-28.5", "10.193.4.0/24", "e2e-g")[0], bundle)
}

// TestSysV is for hosts that sysvinit runs.
func TestSysV(t *testing.T) {
	otherInit(t, hosts(t, "sysv", "10.193.5.0/24", "e2e-h")[0], bundle)
}

// life is what happens to a cluster between master and turndown.
func life(t *testing.T, made []machine, harm func(t *testing.T, master, worker machine)) {
	master, worker := made[0], made[1]
	var before []string
	for _, m := range made {
		owned(t, m)
		before = append(before, m.settledWorld(t))
	}
	t.Run("a dry run changes nothing", func(t *testing.T) {
		master.sh(t, "kube-bootstrap master --dry-run --bundle "+bundle)
		master.sameWorld(t, "master --dry-run", before[0])
	})
	up(t, master, worker, "")
	spread(t, master)
	t.Run("a second run touches nothing", func(t *testing.T) { again(t, made...) })
	t.Run("packets", func(t *testing.T) { packets(t, master, made...) })
	t.Run("packets after a restart of Docker", func(t *testing.T) {
		for _, m := range made {
			m.sh(t, "systemctl restart docker && docker start owner-once")
		}
		packetsAgain(t, master, made...)
	})
	harm(t, master, worker)
	t.Run("turndown", func(t *testing.T) {
		for _, m := range made {
			m.sh(t, settled+"; "+deadShimSocket)
		}
		worker.sh(t, "kube-bootstrap turndown --yes --keep-images")
		downInUse(t, master)
		down(t, worker)         // resets the images too, where they were kept
		down(t, worker, master) // twice is harmless
		for i, m := range made {
			m.sameWorld(t, "master or worker, then turndown,", before[i])
		}
	})
}

// settled leaves of the containers only the owner's, all of which run.
const settled = "docker rm -f probe >/dev/null 2>&1; docker start owner-once >/dev/null"

// deadShimSocket leaves a socket on which nobody listens, as containerd does when
// the kubelet ends while a sandbox starts.
const deadShimSocket = "cp -a $(ls -d /run/containerd/s/* | head -n 1) /run/containerd/s/dead"

// downInUse resets a machine on which a user's container uses an image of the
// cluster: the image stays, and turndown reports it.
func downInUse(t *testing.T, m machine) {
	t.Helper()
	m.sh(t, "docker create --name shop $(docker inspect -f '{{.Config.Image}}' kubelet) true")
	if says := m.sh(t, "kube-bootstrap turndown --yes 2>&1"); !strings.Contains(says, "used by container shop") {
		t.Errorf("%s: turndown does not say which image is left:\n%s", m.name, says)
	}
	m.sh(t, "image=$(docker inspect -f '{{.Config.Image}}' shop) && docker rm shop && docker image rm $image")
}

// harm is what a cluster must stand: those who mean ill, and what breaks.
func harm(t *testing.T, master, worker machine) {
	t.Run("security", func(t *testing.T) { security(t, master, worker) })
	t.Run("settings", func(t *testing.T) { badSettings(t, master, worker) })
	t.Run("logins", func(t *testing.T) { logins(t, master) })
	t.Run("repairs", func(t *testing.T) { repairs(t, master, worker) })
}

// again runs both verbs a second time.
func again(t *testing.T, made ...machine) {
	for i, verb := range []string{"master", "worker"} {
		was := made[i].steady(t)
		made[i].sh(t, "kube-bootstrap "+verb+" --bundle "+bundle)
		if is := made[i].running(t); is != was {
			t.Errorf("%s: a second run restarted something:\n%s\nthen\n%s", made[i].name, was, is)
		}
	}
}

func packets(t *testing.T, master machine, made ...machine) {
	ends := startProbes(t, master, made...)
	matrix(t, master, ends)
	services(t, master, ends)
	bigTransfer(t, container(ends, made[0]), container(ends, made[1]))
}

func packetsAgain(t *testing.T, master machine, made ...machine) {
	ends := findProbes(t, master, made...)
	matrix(t, master, ends)
	services(t, master, ends)
}

// container returns the plain container of a machine.
func container(ends []end, on machine) end {
	for _, e := range ends {
		if e.kind == "container" && e.on == on {
			return e
		}
	}
	return end{}
}
