package localcluster

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheNodesOfAFile(t *testing.T) {
	cfg := config.Default()
	small := config.Default()
	small.NodeCPUs, small.NodeMemory = resource.MustParse("500m"), resource.MustParse("1Gi")
	cfg.Nodes = []config.NodeEntry{
		{Role: config.RoleControlPlane, Count: 1},
		{Role: config.RoleWorker, Count: 2, Name: "db"},
		{Role: config.RoleWorker, Count: 1, Name: "web", HostImage: "docker-26.1", Settings: small},
		{Role: config.RoleWorker, Count: 2},
	}
	var got []string
	for _, n := range nodesOf(cfg).Nodes {
		got = append(got, fmt.Sprint(n.Role, " ", n.Name, " ", n.HostImage, " ", n.NanoCPUs, " ", n.Memory))
	}
	const want = "master   0 0\nworker db-1  0 0\nworker db-2  0 0\nworker web docker-26.1 500000000 1073741824\n" +
		"worker   0 0\nworker   0 0"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
}

// TestManifestsOfThisMachine: nodes find them under another path, and the settings of the caller, which
// are recorded, keep the paths of this machine.
func TestManifestsOfThisMachine(t *testing.T) {
	addons := []string{"metallb", "./app.yaml", "https://example.com/other.yaml"}
	cfg := config.Default()
	cfg.CNIPlugin, cfg.Addons = "./net.yaml", addons
	all := manifestsOf(&cfg)
	if got := fmt.Sprint(all); got != "[{./net.yaml /etc/kube-bootstrap-manifests/network.yaml} {./app.yaml "+
		"/etc/kube-bootstrap-manifests/addon-2.yaml}]" {
		t.Errorf("manifests %s", got)
	}
	if got := cfg.CNIPlugin + " " + strings.Join(cfg.Addons,
		" "); got != "/etc/kube-bootstrap-manifests/network.yaml metallb /etc/kube-bootstrap-manifests/addon-2.yaml "+
		"https://example.com/other.yaml" {
		t.Errorf("the nodes get %s", got)
	}
	if addons[1] != "./app.yaml" {
		t.Errorf("the settings of the caller have %s", addons[1])
	}
}

func TestManifestsAreCheckedBeforeHosts(t *testing.T) {
	dir := t.TempDir()
	good := must.Write(t, filepath.Join(dir, "good.yaml"), "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n")
	bad := must.Write(t, filepath.Join(dir, "bad.yaml"), "no object\n")
	must.NoError(t, checkManifests([]cluster.ManifestFile{{Path: good}}))
	for _, path := range []string{bad, filepath.Join(dir, "none.yaml")} {
		err := checkManifests([]cluster.ManifestFile{{Path: good}, {Path: path}})
		if found := step.Problems(err); len(found) != 1 || found[0].Name != "manifest" ||
			!strings.Contains(found[0].Text, path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

// TestNodesPullThroughTheLocalRegistry: the record of a cluster without registry and mirrors stays
// as it was.
func TestNodesPullThroughTheLocalRegistry(t *testing.T) {
	given := config.Origin{Source: config.FromFlag}
	for name, c := range map[string]struct {
		port    int
		origins config.Origins
		want    string // part of the arguments of the nodes
	}{
		"none given":     {0, config.Origins{}, ""},
		"registry":       {5001, config.Origins{"localRegistry": given}, "10.192."},
		"registry ended": {0, config.Origins{"localRegistry": given}, "--registry-mirror="},
	} {
		cfg := config.Default()
		cfg.LocalRegistry = c.port
		before := len(c.origins)
		got, origins := throughRegistry(cfg, c.origins, netip.MustParsePrefix("10.192.0.0/16"))
		args := strings.Join(got.Args(config.Master, origins), " ")
		if !strings.Contains(args, c.want) || c.want == "" && args != "" {
			t.Errorf("%s: the nodes get %q, want %q", name, args, c.want)
		}
		if len(c.origins) != before {
			t.Errorf("%s: the origins of the caller are %v", name, c.origins)
		}
	}
}
