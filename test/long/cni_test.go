//go:build e2e

package long

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/addon"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestOtherNetwork gives pods a network by a manifest of the user: flannel in a
// DaemonSet. docker0 stays as the owner has it, and turndown leaves nothing.
func TestOtherNetwork(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.193.12.0/24", "e2e-n", "e2e-o")
	master, worker := made[0], made[1]
	var before []string
	for _, m := range made {
		hosts.Owned(t, m)
		before = append(before, m.World(t))
	}
	master.Put(t, networkManifest(t, master), "/root/network.yaml")
	bridge := master.Sh(t, "ip -4 -br addr show docker0")

	addons := serveAddon(t, "10.193.12.1", "downloaded") + ",/root/addon.yaml"
	master.Sh(t, "cat > /root/addon.yaml <<'YAML'\n"+addonNamed("read")+"YAML")
	clusters.Up(t, master, worker, "--cni-plugin /root/network.yaml --addons "+addons)
	master.Kubectl(t, "get configmaps downloaded read")
	if now := master.Sh(t, "ip -4 -br addr show docker0"); now != bridge {
		t.Errorf("docker0 was %q and is %q", bridge, now)
	}
	// The agent moves one CoreDNS pod to the new node, so pods are listed each time.
	// This plugin makes a node Ready before it has written the routes to the others.
	for _, m := range made {
		wait.Until(t, time.Minute, m.Name+" reaches the CoreDNS pods of both nodes", func() error {
			_, err := m.Try(t.Context(), asksDNSPods(master.Kubectl(t, dnsPods)))
			return err
		})
	}
	// The files may be gone when master runs again: they were kept.
	master.Kubectl(t, "delete configmaps downloaded read")
	master.Sh(t, "rm /root/network.yaml /root/addon.yaml && "+
		"kube-bootstrap master --cni-plugin /root/network.yaml --addons "+addons+" --bundle "+hosts.Bundle)
	master.Kubectl(t, "get configmaps downloaded read")
	if out, err := master.Try(t.Context(), "kube-bootstrap master --cni-plugin bridge --bundle "+hosts.Bundle+
		" 2>&1"); err == nil || !strings.Contains(out, "[cni-plugin]") {
		t.Errorf("the network of a cluster that runs is changed: %v\n%s", err, out)
	}
	clusters.Down(t, worker, master)
	for i, m := range made {
		m.SameWorld(t, "a cluster with another network", before[i])
	}
}

const dnsPods = `-n kube-system get pods -l k8s-app=kube-dns -o 'jsonpath={range .items[*]}{.status.podIP} {end}'`

// asksDNSPods is a script that fails unless each of two pods answers.
func asksDNSPods(addresses string) string {
	return "set -- " + addresses + "; test $# = 2 && for ip; do curl -sS --max-time 10 http://$ip:8181/ready || " +
		"exit; done"
}

func addonNamed(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: " + name + ", namespace: default}\n"
}

// serveAddon serves an addon once and returns its URL, with its sum.
func serveAddon(t *testing.T, address, name string) string {
	t.Helper()
	listener, err := net.Listen("tcp", address+":0")
	must.NoError(t, err)
	text, served := addonNamed(name), false
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if served {
			http.Error(w, "away", http.StatusServiceUnavailable)
			return
		}
		served = true
		_, _ = io.WriteString(w, text)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	return fmt.Sprintf("http://%s/addon.yaml#sha256:%x", listener.Addr(), sha256.Sum256([]byte(text)))
}

func networkManifest(t *testing.T, master hosts.Machine) string {
	t.Helper()
	versions, err := image.For("", image.Versions{})
	must.NoError(t, err)
	text, err := addon.Applier{Values: func() (addon.Values, error) {
		return addon.Values{
			FlannelImage: image.Ref(versions, "flannel"), Backend: "host-gw",
			PodCIDR: netip.MustParsePrefix("10.1.0.0/16"), Server: "https://" + master.IP + ":6443",
		}, nil
	}}.Flannel()
	must.NoError(t, err)
	path := filepath.Join(t.TempDir(), "network.yaml")
	must.NoError(t, os.WriteFile(path, text, 0o644))
	return path
}
