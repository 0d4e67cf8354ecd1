package clusters

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// Life is what happens to a cluster between master and turndown.
func Life(t *testing.T, made []hosts.Machine, harm func(t *testing.T, master, worker hosts.Machine)) {
	master, worker := made[0], made[1]
	var before []string
	for _, m := range made {
		hosts.Owned(t, m)
		before = append(before, m.SettledWorld(t))
	}
	t.Run("a dry run changes nothing", func(t *testing.T) {
		master.Sh(t, "kube-bootstrap master --dry-run --bundle "+hosts.Bundle)
		master.SameWorld(t, "master --dry-run", before[0])
	})
	Up(t, master, worker, "")
	Spread(t, master)
	t.Run("a second run touches nothing", func(t *testing.T) { Again(t, made...) })
	t.Run("packets", func(t *testing.T) { traffic.Packets(t, master, made...) })
	t.Run("packets after a restart of Docker", func(t *testing.T) {
		for _, m := range made {
			m.Sh(t, "systemctl restart docker && docker start owner-once")
		}
		traffic.PacketsAgain(t, master, made...)
	})
	harm(t, master, worker)
	t.Run("turndown", func(t *testing.T) {
		for _, m := range made {
			m.Sh(t, Settled+"; "+deadShimSocket)
		}
		worker.Sh(t, "kube-bootstrap turndown --yes --keep-images")
		downInUse(t, master)
		Down(t, worker)         // resets the images too, where they were kept
		Down(t, worker, master) // twice is harmless
		for i, m := range made {
			m.SameWorld(t, "master or worker, then turndown,", before[i])
		}
	})
}

// deadShimSocket leaves a socket on which nobody listens, as containerd does when
// the kubelet ends while a sandbox starts.
const deadShimSocket = "cp -a $(ls -d /run/containerd/s/* | head -n 1) /run/containerd/s/dead"

// downInUse resets a machine on which a user's container uses an image of the
// cluster: the image stays, and turndown reports it.
func downInUse(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Sh(t, "docker create --name shop $(docker inspect -f '{{.Config.Image}}' kubelet) true")
	if says := m.Sh(t, "kube-bootstrap turndown --yes 2>&1"); !strings.Contains(says, "used by container shop") {
		t.Errorf("%s: turndown does not say which image is left:\n%s", m.Name, says)
	}
	m.Sh(t, "image=$(docker inspect -f '{{.Config.Image}}' shop) && docker rm shop && docker image rm $image")
}
