package artifact

import (
	"strings"
	"testing"
)

func TestALayerOfAWrongSizeIsNamed(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	_, err := parseStored([]byte(`{"layers": {"` + digest + `": {"digest": "` + digest + `", "size": -1}}}`))
	if want := "how it is stored: layer " + digest + ": -1 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestInRegistry(t *testing.T) {
	for ref, want := range map[string][2]string{
		"registry.k8s.io/kube-apiserver:v1.36.2":    {"kube-apiserver", "v1.36.2"},
		"registry.k8s.io/coredns/coredns:v1.14.2":   {"coredns/coredns", "v1.14.2"},
		"quay.io:443/flannel/flannel:v0.28.0-amd64": {"flannel/flannel", "v0.28.0-amd64"},
	} {
		if path, tag := inRegistry(ref); path != want[0] || tag != want[1] {
			t.Errorf("%s: got %s, %s", ref, path, tag)
		}
	}
}
