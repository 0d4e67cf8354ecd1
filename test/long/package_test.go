//go:build e2e

package long

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPackage installs the Debian package on a host, sets the host up with it,
// removes it while the host is a control plane, and turns the host down with
// the copy that the host has.
func TestPackage(t *testing.T) {
	deb := packaged(t)
	m := hosts.New(t, "docker-28.5", "10.193.21.0/24", "e2e-package")[0]
	m.Sh(t, "rm -f /usr/local/bin/kube-bootstrap; touch /var/log/dpkg.log")
	hosts.Owned(t, m) // Docker makes directories for its first container
	before := m.World(t)
	m.Put(t, deb, "/root/kube-bootstrap.deb")
	m.Sh(t, "dpkg -i /root/kube-bootstrap.deb && rm /root/kube-bootstrap.deb && hash -r")
	if out := m.Sh(t, "command -v kube-bootstrap; kube-bootstrap version"); !strings.HasPrefix(out,
		"/usr/bin/kube-bootstrap\nkube-bootstrap v0.0.1 ") {
		t.Errorf("the installed program is %s", out)
	}
	m.Sh(t, "bash -c '. /usr/share/bash-completion/completions/kube-bootstrap && complete -p kube-bootstrap'")
	m.Sh(t, "kube-bootstrap master --no-dedicated --bundle "+hosts.Bundle)
	m.Sh(t, "dpkg -P kube-bootstrap && ! test -e /usr/bin/kube-bootstrap && "+
		"! test -e /usr/share/fish/vendor_completions.d/kube-bootstrap.fish")
	m.Sh(t, "/var/lib/kube-bootstrap/bin/kube-bootstrap turndown --yes")
	m.SameWorld(t, "the package, master, and turndown", before)
}

// packaged returns the path of a package of this machine's architecture.
func packaged(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	build := "go build -trimpath -ldflags '-s -w -X main.version=v0.0.1' -o $1/kube-bootstrap-linux-$2 " +
		"./cmd/kube-bootstrap && scripts/make-packages.sh $1 v0.0.1 $2"
	_, err := host.Command{
		Args: []string{"sh", "-ec", build, "sh", dir, runtime.GOARCH}, Env: []string{"CGO_ENABLED=0"}, Dir: "../..",
	}.Run(t.Context())
	must.NoError(t, err)
	return filepath.Join(dir, "kube-bootstrap-v0.0.1-linux-"+runtime.GOARCH+".deb")
}
