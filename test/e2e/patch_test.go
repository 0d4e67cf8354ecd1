//go:build e2e && long

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// TestPatch updates a cluster of two hosts, which have no registry, from the
// former patch of Kubernetes, and loses no request to a Service.
func TestPatch(t *testing.T) {
	const oldBundle = "/root/old.tar.zst"
	minors := catalog.Minors()
	now := minors[len(minors)-1].Patch
	old := former(t, now)
	path := filepath.Join(t.TempDir(), "old")
	build := host.Command{Args: []string{built.binary, "offline", "build", "--quick", "--progress", "none", "--kubernetes-version", old, "--to", path}}
	if _, err := build.Run(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
	made := hosts(t, "docker-28.5", "10.193.16.0/24", "e2e-p1", "e2e-p2")
	master, worker := made[0], made[1]
	for _, m := range made {
		owned(t, m)
		m.put(t, path, oldBundle)
	}
	upFrom(t, oldBundle, master, worker, "--kubernetes-version "+old)
	startProbes(t, master, made...)
	lost := requests(t, worker, "http://"+master.kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")+":8080/")

	master.sh(t, "kube-bootstrap master --bundle "+bundle+" --kubernetes-version "+now+" 2>&1")
	kubelets(t, master, now, old)
	t.Run("the worker follows Services until its turn", func(t *testing.T) {
		master.kubectl(t, "expose pod probe-"+master.name+" --name later --port 8080")
		later := master.kubectl(t, "get service later -o 'jsonpath={.spec.clusterIP}'")
		soon(t, time.Minute, "the new Service", worker, "curl -sf -m 5 -o /dev/null "+later+":8080/")
	})
	worker.sh(t, "kube-bootstrap worker --bundle "+bundle+" --kubernetes-version "+now+" 2>&1")
	kubelets(t, master, now, now)
	since := time.Now().UTC()
	eventually(t, 3*time.Minute, "nodes and pods", func() error { return allReady(t, master, since, 2) })
	if proxies := master.kubectl(t, "-n kube-system get pods -l k8s-app=kube-proxy -o 'jsonpath={.items[*].spec.containers[0].image}'"); strings.Count(proxies, now) != 2 || strings.Contains(proxies, old) {
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
func kubelets(t *testing.T, master machine, want ...string) {
	t.Helper()
	if is := master.kubectl(t, "get nodes -o 'jsonpath={.items[*].status.nodeInfo.kubeletVersion}'"); is != strings.Join(want, " ") {
		t.Errorf("the kubelets have the versions %s, want %s", is, want)
	}
}
