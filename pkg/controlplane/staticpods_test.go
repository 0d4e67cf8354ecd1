package controlplane

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// TestPodsAreExchanged: while the kubelet has the pod of before, no manifest of
// that name is there.
func TestPodsAreExchanged(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	if err := pods(c).Early().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	const group = "/sys/fs/cgroup/cpu/kubepods/burstable/pod0a1b"
	running(t, c, group)
	changed := pods(c)
	changed.Image = func(program string) string { return "registry.example/" + program + ":new" }
	done := make(chan error)
	go func() { done <- changed.Early().Apply(t.Context()) }()
	manifest := podPath("kube-apiserver")
	for c.Files.Exists(manifest) {
		time.Sleep(time.Millisecond)
	}
	select {
	case err := <-done:
		t.Fatalf("the pod was not waited for: %v", err)
	default:
	}
	if err := os.Remove(c.Files.Path(group)); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if d, err := changed.Early().Check(t.Context()); err != nil || len(d) > 0 {
		t.Errorf("left to do: %v %v", d, err)
	}
}

// TestPodsAreWrittenWhateverHappens: one who is interrupted leaves no host
// without an API server.
func TestPodsAreWrittenWhateverHappens(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	if err := pods(c).Early().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	running(t, c, "/sys/fs/cgroup/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod0a1b.slice")
	changed := pods(c)
	changed.Image = func(program string) string { return "registry.example/" + program + ":new" }
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := changed.Early().Apply(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("interrupted: %v", err)
	}
	if d, err := changed.Early().Check(t.Context()); err != nil || len(d) > 0 {
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
