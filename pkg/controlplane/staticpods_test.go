package controlplane

import (
	"context"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestPodsAreExchanged: no manifest exists until the kubelet has ended the old pod, even after
// an interrupt. Otherwise the kubelet would start the new pod late.
func TestPodsAreExchanged(t *testing.T) {
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	for name, ctx := range map[string]context.Context{"to its end": t.Context(), "interrupted": interrupted} {
		t.Run(name, func(t *testing.T) { exchanged(ctx, t) })
	}
}

func exchanged(ctx context.Context, t *testing.T) {
	c := fresh(t)
	issue(t, c)
	must.NoError(t, pods(c).WriteAPIServer().Apply(t.Context()))
	const group = "/sys/fs/cgroup/cpu/kubepods/burstable/pod0a1b"
	running(t, c, group)
	changed := pods(c)
	changed.Image = func(program string) string { return "registry.example/" + program + ":new" }
	done := make(chan error)
	go func() { done <- changed.WriteAPIServer().Apply(ctx) }()
	manifest := podPath("kube-apiserver")
	for c.Files.Exists(manifest) {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-done:
		t.Fatalf("the pod was not waited for: %v", err)
	case <-time.After(50 * time.Millisecond):
	}
	must.NoError(t, os.Remove(c.Files.Path(group)))
	must.NoError(t, <-done)
	if d, err := changed.WriteAPIServer().Check(t.Context()); err != nil || len(d) > 0 {
		t.Errorf("left to do: %v %v", d, err)
	}
}

// TestPodsAreWrittenWhateverHappens: a kubelet that does not run ends no pod.
func TestPodsAreWrittenWhateverHappens(t *testing.T) { synctest.Test(t, writtenWhateverHappens) }

func writtenWhateverHappens(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	must.NoError(t, pods(c).WriteAPIServer().Apply(t.Context()))
	running(t, c, "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b.slice")
	changed := pods(c)
	changed.Image = func(program string) string { return "registry.example/" + program + ":new" }
	must.NoError(t, changed.WriteAPIServer().Apply(t.Context()))
	if d, err := changed.WriteAPIServer().Check(t.Context()); err != nil || len(d) > 0 {
		t.Errorf("left to do: %v %v", d, err)
	}
}

// running lays out what the kubelet leaves of a pod that runs.
func running(t *testing.T, c PKI, group string) {
	t.Helper()
	for _, dir := range []string{podLogDir + "/kube-system_kube-apiserver-node-1_0a1b", group} {
		if err := os.MkdirAll(c.Files.Path(dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
