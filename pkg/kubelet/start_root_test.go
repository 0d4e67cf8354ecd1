//go:build root

package kubelet

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheKubeletReadsTheConfigurationOfItsContainer: the container's hash is that of the
// desired configuration, so the agent, which applies Start only, must write that file.
func TestTheKubeletReadsTheConfigurationOfItsContainer(t *testing.T) {
	k := fresh(t, false)
	t.Cleanup(func() { _ = filesystem.UnmountBelow(k.Files.Root) })
	tree, err := k.files()
	must.NoError(t, err)
	must.NoError(t, k.Files.Put(tree))
	before, err := k.reads()
	must.NoError(t, err)
	put(t, k.Files, hostResolv, "nameserver 127.0.0.53\n")
	put(t, k.Files, systemResolv, "nameserver 192.0.2.1\n")
	if after, err := k.reads(); err != nil || after == before {
		t.Fatalf("the container does not change with the resolver: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	if err := k.Start().Apply(ctx); err == nil {
		t.Fatal("a container was started without Docker")
	}
	if now := string(must.Read(t, k.Files.Path(configFile))); !strings.Contains(now, "resolvConf: "+systemResolv) {
		t.Errorf("a new container reads:\n%s", now)
	}
}
