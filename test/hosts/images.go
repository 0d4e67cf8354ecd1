package hosts

import (
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// LoadProbe gives the image of the probe to Docker.
func LoadProbe(t *testing.T, m Machine) {
	t.Helper()
	m.Sh(t, "mkdir -p /root/probe && cp /usr/local/bin/probe /root/probe/ && tar -C /root/probe -c . | "+
		"docker import - "+ProbeImage)
}

// ForPods gives the image of the probe to containerd, from which pods start.
func ForPods(t *testing.T, m Machine) {
	t.Helper()
	m.Sh(t, "docker save "+ProbeImage+" | ctr -n k8s.io images import - >/dev/null")
}

// LoadPlain is `zstd -dc BUNDLE | docker load` on a host.
func LoadPlain(t *testing.T, m Machine) {
	t.Helper()
	file, err := os.Open(Built.Bundle)
	must.NoError(t, err)
	defer file.Close()
	plain, err := zstd.NewReader(file)
	must.NoError(t, err)
	defer plain.Close()
	if _, err := (host.Command{
		Args: []string{"docker", "exec", "-i", m.Name, "docker", "load", "-q"}, Stdin: plain,
	}).Run(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// ProbeImage is the image of test/probe.
const ProbeImage = "kube-bootstrap.dev/probe:test"
