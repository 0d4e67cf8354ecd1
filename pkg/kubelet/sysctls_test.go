package kubelet

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestKeepSysctls sets what is off, with or without a link, and no more.
func TestKeepSysctls(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	put(t, files, "/proc/sys/net/ipv4/ip_forward", "0\n")
	put(t, files, "/proc/sys/net/ipv4/conf/flannel.1/forwarding", "0\n")
	put(t, files, "/proc/sys/net/ipv4/conf/eth0/forwarding", "1\n")
	s := KeepSysctls(files, "docker0", "flannel.1", "eth0")
	const want = "set net.ipv4.ip_forward = 1; set net.ipv4.conf.flannel/1.forwarding = 1"
	if diff, err := s.Check(t.Context()); err != nil || diff.String() != want {
		t.Errorf("got %q, %v", diff, err)
	}
	for range 2 {
		must.NoError(t, s.Apply(t.Context()))
	}
	if diff, err := s.Check(t.Context()); err != nil || len(diff) > 0 || files.Exists("/proc/sys/net/ipv4/conf/docker0") {
		t.Errorf("afterwards: %q, %v", diff, err)
	}
}
