//go:build e2e

package long

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestPatch updates a cluster of two hosts, which have no registry, from the
// former patch of Kubernetes, and loses no request to a Service.
func TestPatch(t *testing.T) {
	const oldBundle = "/root/old.tar.zst"
	minors := catalog.Minors()
	now := minors[len(minors)-1].Patch
	old := former(t, now)
	path := filepath.Join(t.TempDir(), "old")
	build := host.Command{
		Args: []string{
			hosts.Built.Binary, "offline", "build", "--quick", "--progress", "none", "--kubernetes-version", old,
			"--to", path,
		},
	}
	if _, err := build.Run(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	made := hosts.New(t, "docker-28.5", "10.193.16.0/24", "e2e-p1", "e2e-p2")
	master, worker := made[0], made[1]
	for _, m := range made {
		hosts.Owned(t, m)
		m.Put(t, path, oldBundle)
	}
	clusters.UpFrom(t, oldBundle, master, worker, "--kubernetes-version "+old)
	traffic.StartProbes(t, master, made...)
	lost := requests(t, worker, "http://"+master.Kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")+
		":8080/")

	master.Sh(t, "kube-bootstrap master --bundle "+hosts.Bundle+" --kubernetes-version "+now+" 2>&1")
	kubelets(t, master, now, old)
	t.Run("the worker follows Services until its turn", func(t *testing.T) {
		master.Kubectl(t, "expose pod probe-"+master.Name+" --name later --port 8080")
		later := master.Kubectl(t, "get service later -o 'jsonpath={.spec.clusterIP}'")
		hosts.Soon(t, time.Minute, "the new Service", worker, "curl -sf -m 5 -o /dev/null "+later+":8080/")
	})
	worker.Sh(t, "kube-bootstrap worker --bundle "+hosts.Bundle+" --kubernetes-version "+now+" 2>&1")
	kubelets(t, master, now, now)
	since := time.Now().UTC()
	wait.Until(t, 3*time.Minute, "nodes and pods", func() error { return clusters.AllReady(t, master, since, 2) })
	if proxies := master.Kubectl(t, "-n kube-system get pods -l k8s-app=kube-proxy -o "+
		"'jsonpath={.items[*].spec.containers[0].image}'"); strings.Count(proxies, now) != 2 ||
		strings.Contains(proxies, old) {
		t.Errorf("the images of kube-proxy are %s", proxies)
	}
	if out := lost(); out != "" {
		t.Errorf("requests were lost:\n%s", out)
	}
}

// former returns the patch before that one.
func former(t *testing.T, patch string) string {
	t.Helper()
	v := version.MustParseSemantic(patch)
	if v.Patch() == 0 {
		t.Fatalf("there is no patch before %s", patch)
	}
	return "v" + v.WithPatch(v.Patch()-1).String()
}

// kubelets expects the versions of the kubelets, in the order of the nodes' names.
func kubelets(t *testing.T, master hosts.Machine, want ...string) {
	t.Helper()
	if is := master.Kubectl(t, "get nodes -o "+
		"'jsonpath={.items[*].status.nodeInfo.kubeletVersion}'"); is != strings.Join(want, " ") {
		t.Errorf("the kubelets have the versions %s, want %s", is, want)
	}
}
