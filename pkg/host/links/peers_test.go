package links_test

import (
	"path/filepath"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestDeleteInto(t *testing.T) {
	within(t)
	const name = "kb-links-test"
	t.Cleanup(func() { hosttest.Shell(t, "ip netns del "+name) })
	hosttest.Shell(t, `ip netns add `+name+`
		ip link add pod0 type veth peer name eth0 netns `+name+`
		ip link add other type veth peer name other0`)
	for range 2 { // the second time, none is left
		must.NoError(t, links.DeleteInto("/run/netns/"+name))
	}
	if _, ok, err := links.Find("pod0"); ok || err != nil {
		t.Errorf("the interface of the namespace: %v, %v", ok, err)
	}
	find(t, "other")
	find(t, "eth0")

	stale := must.Write(t, filepath.Join(t.TempDir(), "cni-1"), "")
	if err := links.DeleteInto(stale); err != nil {
		t.Errorf("a file that is not a namespace: %v", err)
	}
}
