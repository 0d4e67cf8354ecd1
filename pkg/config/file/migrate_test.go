package file

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func write(t *testing.T, text string) string {
	t.Helper()
	return must.Write(t, filepath.Join(t.TempDir(), "kb.yaml"), text)
}

const head = "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\n"

func TestMigrate(t *testing.T) {
	path := write(t, "dind:\n  subnet: 10.9.0.0/16\nsource:\n  kubernetesVersion: v1.36.3\n  buildHyperkube: "+
		"true\ncluster:\n  numNodes: 2\n  noDedicated: true\n  addons: [dashboard]\nverbose: 2\n")
	data, err := Migrate(path)
	want := head + "kubernetesVersion: v1.36.3\naddons: [dashboard]\nnoDedicated: true\nworkers: 2\ndindSubnet: " +
		"10.9.0.0/16\n"
	if err != nil || string(data) != want {
		t.Errorf("%v\n%s\nwant\n%s", err, data, want)
	}
	if _, err := Migrate(write(t, want)); err == nil || !strings.Contains(err.Error(), "nothing to migrate") {
		t.Errorf("a file of the current format: %v", err)
	}
	if _, err := Migrate(write(t, "source:\n  kubeadmUrl: http://x\n")); err == nil ||
		!strings.Contains(err.Error(), ":2: source.kubeadmUrl: is no more") {
		t.Errorf("a field without a successor: %v", err)
	}
}
