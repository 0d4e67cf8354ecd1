package renewal

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheStatusOfARotationNamesWhatToDo(t *testing.T) {
	future := time.Now().Add(time.Hour)
	for want, s := range map[string]RotationStatus{
		"the control planes use the new key; if the command was interrupted, " +
			"finish it with `kube-bootstrap certs rotate` and --encryption-key": {
			Subject: controlplane.EncryptionKey, Phase: "use the new key",
		},
		"the hosts use the new authorities, a and b not yet; if the command was interrupted": {
			Subject: rotation.Authorities, Phase: "use the new authorities", WaitsFor: []string{"a", "b"},
		},
		"; the old key can be dropped after " + future.Local().Format(time.DateTime): {
			Subject: controlplane.AccountKey, Phase: "use the new key", Until: future,
		},
		"the control planes use the new key; if the command": { // the time has passed
			Subject: controlplane.AccountKey, Phase: "use the new key", Until: time.Now().Add(-time.Second),
		},
	} {
		if got := s.String(); !strings.Contains(got, want) {
			t.Errorf("got %s\nwant %s", got, want)
		}
	}
}

// TestOnlyACompleteHostRenews: a run that was killed may not have issued what a renewal replaces.
func TestOnlyACompleteHostRenews(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if found := step.Problems(Renews(files)); len(found) != 1 || found[0].Name != "unfinished" || !found[0].Firm {
		t.Errorf("got %v", found)
	}
	must.NoError(t, files.Put([]host.File{local.CompleteMark}))
	must.NoError(t, Renews(files))
}

// TestAFileThatAnAdministratorRemovedIsNotIssuedAgain: super-admin.conf is optional.
func TestAFileThatAnAdministratorRemovedIsNotIssuedAgain(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	optional := 0
	for _, held := range heldBy(local.ControlPlane) {
		if !held.Optional {
			continue
		}
		optional++
		must.NoError(t, files.Write(held.Path, []byte("x"), 0o600))
		before := len(Present(files))
		must.NoError(t, files.Remove(held.Path))
		if after := len(Present(files)); held.RenewedBy != "" && after != before-1 {
			t.Errorf("%s: %d certificates, and %d without it", held.Name, before, after)
		}
	}
	if optional == 0 || len(Renewable()) < len(Present(files)) {
		t.Errorf("%d optional certificates, renewable are %q", optional, Renewable())
	}
}
