package kubelet

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestDamagedRecords(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	reads := map[string]func() error{
		sysctlRecord.Path: func() error { _, err := sysctlRecord.Read(files); return err },
		foundRecord.Path:  func() error { _, err := foundRecord.Read(files); return err },
		routeRecord.Path:  func() error { _, err := routeRecord.Read(files); return err },
	}
	for path, read := range reads {
		if err := read(); !host.Lost(err) || host.IsDamaged(err) {
			t.Errorf("%s is missing: %v", path, err)
		}
		for _, content := range []string{"", "{", "null", "[1]", "\x00\xff", `"10.96.0.7/16"`, `{"kernel.panic": "10 > /x"}`, `{"net.ipv4.conf.eth0.x": "1"}`, `{"entries": ["../etc"], "tables": [], "chains": []}`} {
			must.NoError(t, files.Write(path, []byte(content), 0o600))
			if err := read(); !host.IsDamaged(err) {
				t.Errorf("%s with %q: %v", path, content, err)
			}
		}
	}
}

// TestLostKernelSettings: kube-bootstrap has set the current kernel settings, so a
// run must not record them as the original settings. Undo reports that they stay.
func TestLostKernelSettings(t *testing.T) {
	for name, lose := range map[string]func(host.Files) error{
		"empty":   func(f host.Files) error { return f.Write(sysctlRecord.Path, nil, 0o600) },
		"missing": func(f host.Files) error { return f.Write(Kubeconfig, nil, 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			files := host.Files{Root: t.TempDir()}
			must.NoError(t, files.Write("/proc/sys/kernel/panic", []byte("10\n"), 0o644))
			must.NoError(t, lose(files))
			s := RememberSysctls(files)
			if diff, err := s.Check(t.Context()); len(diff) != 1 || err != nil {
				t.Errorf("before: %q, %v", diff, err)
			}
			must.NoError(t, s.Apply(t.Context()))
			if values, err := sysctlRecord.Read(files); len(values) > 0 || err != nil {
				t.Errorf("kept %v, %v", values, err)
			}
			var left []string
			must.NoError(t, s.Undo(step.WithLeft(t.Context(), func(what string) { left = append(left, what) })))
			if len(left) != 1 || !strings.Contains(left[0], "kernel settings") {
				t.Errorf("left %q", left)
			}
		})
	}
}
