//go:build e2e

package bench

import (
	_ "embed"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// peer is kubeadm with kube-flannel, on the same hosts, with the same programs
// and the same images already loaded. Its CNI config is already written, so that
// it need not wait for its DaemonSet; a user does not have this help.
type peer struct {
	master, worker hosts.Machine
	figures        figures
}

//go:embed kubeadm/build.sh
var kubeadmBuild string

//go:embed kubeadm/install.sh
var kubeadmInstall string

//go:embed kubeadm/prepare.sh
var kubeadmPrepare string

//go:embed kubeadm/reset.sh
var kubeadmReset string

//go:embed kubeadm/init.yaml
var kubeadmInit string

//go:embed kubeadm/kube-flannel.yaml
var kubeFlannel string

// newPeer builds kubeadm and brings it with the images onto the hosts.
func newPeer(t *testing.T, master, worker hosts.Machine) peer {
	t.Helper()
	program, err := filepath.Abs("../../_output/kubeadm")
	must.NoError(t, err)
	if _, err := os.Stat(program); err != nil {
		build := host.Command{Args: []string{"bash", "-c", kubeadmBuild, "build.sh", catalog.Newest().Patch, program}}
		if _, err := build.Run(t.Context()); err != nil {
			t.Fatal("build kubeadm: ", err)
		}
	}
	for _, m := range []hosts.Machine{master, worker} {
		m.Put(t, program, "/opt/kubeadm/kubeadm")
		m.Sh(t, fill(kubeadmInstall, m, ""))
	}
	return peer{master, worker, newFigures()}
}

// fill puts the versions and addresses into a text.
func fill(text string, m hosts.Machine, subnet string) string {
	versions, err := image.For("", image.Versions{})
	if err != nil {
		panic(err) // the default version is a constant
	}
	return strings.NewReplacer("KUBERNETES", versions.Kubernetes, "ETCD", versions.Etcd, "COREDNS", versions.CoreDNS,
		"PAUSE", versions.Pause, "FLANNEL", versions.Flannel, "ADDRESS", m.IP, "SUBNET", subnet).Replace(text)
}

// once makes a cluster, calls use and takes the cluster back.
func (p peer) once(t *testing.T, use func()) {
	t.Helper()
	p.master.Sh(t, fill(kubeadmPrepare, p.master, "10.244.0"))
	p.worker.Sh(t, fill(kubeadmPrepare, p.worker, "10.244.1"))
	p.master.Sh(t, "cat >/opt/kubeadm/init.yaml <<'EOF'\n"+fill(kubeadmInit, p.master, "")+"\nEOF")
	p.master.Sh(t, "probe watch "+p.master.Name+" "+p.worker.Name+" </dev/null >/run/bench 2>&1 &")
	const flags = " --ignore-preflight-errors=all"
	made := timed(t, p.master, "/opt/kubeadm/kubeadm init --config /opt/kubeadm/init.yaml"+flags)
	p.figures.add("master returned", made.end.Sub(made.begin))
	for _, manifest := range []string{fill(kubeFlannel, p.master, ""), benchPods} {
		p.master.Sh(t, "/opt/kubeadm/kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - <<'EOF'\n"+manifest+
			"\nEOF")
	}
	join := p.master.Sh(t, "/opt/kubeadm/kubeadm token create --print-join-command 2>/dev/null")
	joined := timed(t, p.worker, "/opt/kubeadm/"+strings.TrimSpace(join)+flags)
	p.figures.add("worker returned", joined.end.Sub(joined.begin))
	p.figures.seen(seen(t, p.master), made.begin, joined.begin)
	use()
	for i, m := range []hosts.Machine{p.worker, p.master} {
		gone := timed(t, m, "/opt/kubeadm/kubeadm reset --force --cri-socket unix:///run/containerd/containerd.sock")
		p.figures.add("turndown of the "+[]string{"worker", "master"}[i], gone.end.Sub(gone.begin))
		m.Sh(t, kubeadmReset) // what it leaves would be in our way
	}
}
