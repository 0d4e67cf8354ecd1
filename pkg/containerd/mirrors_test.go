package containerd

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestMirrorFiles(t *testing.T) {
	files, err := MirrorFiles(host.Files{Root: t.TempDir()}, []mirror.Mirror{
		{Of: "docker.io", Host: "10.192.0.8:5000", Plain: true},
		{Of: "quay.io", Host: "mirror.example.com", Prefix: "quay"},
		{Of: "localhost:5001", Host: "10.192.0.8:5000", Plain: true},
	})
	must.NoError(t, err)
	want := map[string]string{
		"docker.io": `[host]
[host.'http://10.192.0.8:5000']
capabilities = ['pull', 'resolve']
`,
		"quay.io": `[host]
[host.'https://mirror.example.com/v2/quay']
capabilities = ['pull', 'resolve']
override_path = true
`,
		"localhost:5001": `server = 'http://10.192.0.8:5000'

[host]
[host.'http://10.192.0.8:5000']
capabilities = ['pull', 'resolve']
`,
	}
	if len(files) != len(want) {
		t.Errorf("%d files", len(files))
	}
	for name, text := range want {
		path := hostsDir + "/" + name + "/hosts.toml"
		for _, f := range files {
			if f.Path == path && string(f.Data) != text {
				t.Errorf("%s:\n%s", f.Path, f.Data)
			}
			if f.Path == path {
				delete(want, name)
			}
		}
	}
	if len(want) > 0 {
		t.Errorf("no file for %v", want)
	}
}

// TestNoMirrors: the step that writes these files must not report a config that
// it does not need.
func TestNoMirrors(t *testing.T) {
	onHost := host.Files{Root: t.TempDir()}
	must.NoError(t, onHost.Write(configPath, []byte("= broken"), 0o644))
	if files, err := MirrorFiles(onHost, nil); len(files) > 0 || err != nil {
		t.Errorf("got %v, %v", files, err)
	}
	if _, err := MirrorFiles(onHost, []mirror.Mirror{{Of: "docker.io", Host: "10.192.0.8:5000"}}); err == nil {
		t.Error("a broken config is accepted")
	}
}
