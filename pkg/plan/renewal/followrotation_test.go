package renewal

import (
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// A worker knows its cluster by a hash in its settings. Otherwise a later run takes
// the rotated cluster for another one.
func TestAWorkerKeepsTheHashOfTheAuthorityThatSigns(t *testing.T) {
	authority := func() []byte {
		a, err := pki.NewAuthority("kubernetes", nil, time.Now())
		must.NoError(t, err)
		return a.PEM().Cert
	}
	old, new := string(authority()), string(authority())
	hash := func(pem string) string {
		h, err := join.CAHashOf([]byte(pem))
		must.NoError(t, err)
		return h
	}
	files := host.Files{Root: t.TempDir()}
	for _, c := range []struct{ phase, trusted, want string }{
		{"accept", old + new, hash(old)}, {"use", new + old, hash(new)}, {"drop", new, hash(new)},
	} {
		cfg := config.Default()
		cfg.CACertHash = hash(old)
		h := &local.Host{Files: files, Saved: local.Saved{Role: local.Worker, Config: cfg}}
		must.NoError(t, trustFiles(h.Files, rotation.Trust{ClusterCA: []byte(c.trusted), EtcdCA: []byte(c.trusted)}).Apply(t.Context()))
		must.NoError(t, keepHash(h.Files, h.Saved.Config).Apply(t.Context()))
		saved, err := file.ReadSaved(files.Path(config.SavedPath))
		if err != nil || saved.CACertHash != c.want {
			t.Errorf("%s: the hash is %s, want %s (%v)", c.phase, saved.CACertHash, c.want, err)
		}
	}
	if s := keepHash(files, config.Config{}); s.Name != "" {
		t.Error("the first control plane of a cluster has joined none, and gets a hash")
	}
}

// What was signed in a rotation does not make a worker trust the old authority again.
func TestAPhaseBringsNoAuthorityBack(t *testing.T) {
	authority := func() []byte {
		a, err := pki.NewAuthority("kubernetes", nil, time.Now())
		must.NoError(t, err)
		return a.PEM().Cert
	}
	old, new := string(authority()), string(authority())
	for _, c := range []struct {
		trusted   string
		phase     rotation.Phase
		published string
		back      bool
	}{
		{old, rotation.Accept, old + new, false},
		{old + new, rotation.Use, new + old, false},
		{new + old, rotation.Use, new + old, false}, // again after an interrupt
		{new + old, rotation.Drop, new, false},
		{new, rotation.Drop, new, false},
		{new, rotation.Use, new + old, true},
		{new, rotation.Drop, old, true},
	} {
		files := host.Files{Root: t.TempDir()}
		must.NoError(t, files.Write(join.ClusterCAFile, []byte(c.trusted), 0o644))
		must.NoError(t, files.Write(join.EtcdCAFile, []byte(c.trusted), 0o644))
		trust := rotation.Trust{Rotation: rotation.Rotation{Phase: c.phase}, ClusterCA: []byte(c.published), EtcdCA: []byte(c.published)}
		if back := bringsBack(files, trust); back != c.back {
			t.Errorf("phase %d: %t", c.phase, back)
		}
	}
}
