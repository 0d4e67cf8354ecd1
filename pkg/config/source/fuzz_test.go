package source

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// FuzzFile feeds Load with files: none does harm, and what is taken
// can be kept and read again.
func FuzzFile(f *testing.F) {
	for _, text := range []string{
		"", head, head + "networking:\n  podCIDR: 10.1.0.0/16\n",
		head + "registry: {address: reg:5000/k8s, username: me, password: hunter2hunter2}\n",
		head + "token: [a]\n", "kind: &a [*a]\n", head + "---\n" + head, "\xff\xfe",
		"{\"apiVersion\": \"kube-bootstrap.dev/v1alpha1\"}", head + "token: hunter2hunter2\n",
	} {
		f.Add(text)
	}
	path := filepath.Join(f.TempDir(), "kb.yaml")
	f.Fuzz(func(t *testing.T, text string) {
		must.Write(t, path, text)
		cfg, origins, err := Load(path, noEnv, nil)
		cfg.Validate("master")
		if err != nil {
			return
		}
		kept, err := file.Marshal(cfg)
		must.NoError(t, err)
		must.Write(t, path, kept)
		back, err := file.ReadSaved(path)
		if err != nil {
			t.Fatalf("the settings that were kept cannot be read: %v\n%s", err, kept)
		}
		if again, err := file.Marshal(back); err != nil || string(again) != string(kept) {
			t.Errorf("kept as\n%sand then as\n%s%v", kept, again, err)
		}
		if _, err := file.View(cfg, origins); err != nil {
			t.Error(err)
		}
	})
}
