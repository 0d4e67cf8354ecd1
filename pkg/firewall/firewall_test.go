package firewall

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// running are services that run.
type running struct {
	initsystem.Units
	units []string
}

func (r running) Active(_ context.Context, unit string) (bool, error) {
	return slices.Contains(r.units, unit), nil
}

func testAccess(t *testing.T, units ...string) Access {
	t.Helper()
	return Access{
		Files: host.Files{Root: t.TempDir()}, Units: running{units: units}, Pods: netip.MustParsePrefix("10.1.0.0/16"),
		Ports: []Port{{10250, "tcp"}, {8472, "udp"}, {6443, "tcp"}},
	}
}

func (a Access) write(t *testing.T, path, text string) {
	t.Helper()
	must.NoError(t, os.MkdirAll(filepath.Dir(a.Files.Path(path)), 0o755))
	must.NoError(t, os.WriteFile(a.Files.Path(path), []byte(text), 0o644))
}

// TestNoFirewall: without a program that runs, nothing is written.
func TestNoFirewall(t *testing.T) {
	a := testAccess(t)
	a.write(t, ufwConf, "ENABLED=no\n")
	if diff, err := a.Permit().Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("got %q, %v", diff, err)
	}
	must.NoError(t, a.Permit().Apply(t.Context()))
	must.NoError(t, a.Permit().Undo(t.Context()))
	if a.Files.Exists(zoneFile) {
		t.Error("there are files of a firewall that does not run")
	}
}

// TestUFWRules has rules of the user, of which one is like a wanted one, and rules of a former version.
func TestUFWRules(t *testing.T) {
	const comment = " comment=6b7562652d626f6f747374726170\n"
	const text = `### RULES ###

### tuple ### allow tcp 22 0.0.0.0/0 any 0.0.0.0/0 in
### tuple ### deny any any 0.0.0.0/0 any 10.1.0.0/16 in
### tuple ### allow any any 0.0.0.0/0 any 10.1.0.0/16 in
-A ufw-user-input -s 10.1.0.0/16 -j ACCEPT
### tuple ### allow tcp 80,443 0.0.0.0/0 any 0.0.0.0/0 WWW%20Full - in
### tuple ### allow tcp 6443 0.0.0.0/0 any 0.0.0.0/0 in` + comment +
		"### tuple ### allow udp 8472 0.0.0.0/0 any 0.0.0.0/0 in" + comment +
		"### tuple ### route:allow any any 10.1.0.0/16 any 0.0.0.0/0 in" + comment
	a := testAccess(t)
	a.write(t, ufwRules, text)
	changes, err := a.ufwChanges()
	must.NoError(t, err)
	var got []string
	for _, c := range changes {
		got = append(got, strings.Join(c, " "))
	}
	want := []string{
		"allow proto tcp to any port 6443,10250 comment kube-bootstrap",
		"route allow from 10.1.0.0/16 comment kube-bootstrap",
		"delete allow proto tcp to any port 6443",
	}
	if !slices.Equal(got, want) {
		t.Errorf("changes: %q, want %q", got, want)
	}
	log := filepath.Join(t.TempDir(), "log")
	hosttest.FakeProgram(t, "ufw", "echo \"$@\" >>"+log)
	must.NoError(t, a.Permit().Undo(t.Context()))
	const undone = "delete allow proto tcp to any port 6443\ndelete allow proto udp to any port 8472\nroute delete " +
		"allow to 10.1.0.0/16\n"
	// The rules without the comment are the user's.
	if got := string(must.Read(t, log)); got != undone {
		t.Errorf("undo ran ufw with\n%s", got)
	}
}

// TestFirewalldRefuses: files that firewalld refuses do not remain, because its next reload
// would fail and reject all packets.
func TestFirewalldRefuses(t *testing.T) {
	a := testAccess(t, firewalldUnit)
	hosttest.FakeProgram(t, "firewall-cmd", "[ $1 != --check-config ] || { echo ZONE_CONFLICT >&2; exit 1; }")
	err := a.Permit().Apply(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ZONE_CONFLICT") || a.Files.Exists(zoneFile) {
		t.Errorf("got %v, the zone exists: %t", err, a.Files.Exists(zoneFile))
	}
}

func TestFirewalldStrict(t *testing.T) {
	hosttest.FakeProgram(t, "firewall-cmd", "exit 1")
	a := testAccess(t, firewalldUnit)
	if err := Problem(t.Context(), a); err != nil {
		t.Error("without a file:", err)
	}
	for conf, strict := range map[string]bool{
		"StrictForwardPorts=no\n": false, "# StrictForwardPorts=yes\n": false,
		"DefaultZone=public\nStrictForwardPorts = Yes\n": true,
	} {
		a.write(t, firewalldConf, conf)
		if err := Problem(t.Context(), a); (err != nil) != strict {
			t.Errorf("%q: %v", conf, err)
		}
	}
	if err := Problem(t.Context(), testAccess(t)); err != nil {
		t.Error("firewalld does not run:", err)
	}
}
