package containerd

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestOnlyTheLastContainerCounts(t *testing.T) {
	const running, exited = runtime.ContainerState_CONTAINER_RUNNING, runtime.ContainerState_CONTAINER_EXITED
	etcd := time.Unix(100, 0)
	container := func(at int64, state runtime.ContainerState) *runtime.Container {
		return &runtime.Container{CreatedAt: time.Unix(at, 0).UnixNano(), State: state}
	}
	for name, c := range map[string]struct {
		all   []*runtime.Container
		stuck bool
	}{
		"none yet":        {nil, false},
		"starting":        {[]*runtime.Container{container(101, running)}, false},
		"older than etcd": {[]*runtime.Container{container(99, running)}, true},
		"ended":           {[]*runtime.Container{container(101, exited)}, true},
		"ended, then started again": {[]*runtime.Container{container(102, running), container(101, exited)},
			false},
		"ended twice": {[]*runtime.Container{container(101, exited), container(102, exited)}, true},
		"created, not started, by now": {[]*runtime.Container{container(99,
			runtime.ContainerState_CONTAINER_CREATED)}, false},
		"of an etcd that has no history": {[]*runtime.Container{container(100, running)}, false},
	} {
		if got := whyStuck(c.all, etcd); (got != "") != c.stuck {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The Runner applies a step whose Check got no answer in time.
func TestAPodThatIsReadyIsNotRemoved(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	listener, err := net.Listen("unix", socket) // nobody accepts
	must.NoError(t, err)
	defer listener.Close()
	pod := StaticPod{
		Socket: Socket(socket), Name: "kube-apiserver-a", Ready: func(context.Context) error { return nil },
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := pod.Revive().Apply(ctx); err != nil {
		t.Error(err)
	}
}

func TestAContainerdThatIsSilentIsNotAskedForEver(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	listener, err := net.Listen("unix", socket) // nobody accepts
	must.NoError(t, err)
	defer listener.Close()
	_, _, err = Socket(socket).hasNamespace(step.WithLimit(t.Context(), 100*time.Millisecond))
	if !step.IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
}

func TestLastLineOfACRILog(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for text, want := range map[string]string{
		"":       "",
		"cut":    "cut",
		"a\nb\n": "b",
		"2026-11-23T16:00:00Z stdout F starting\n2026-11-23T16:00:01Z stderr F cannot bind: address in use\n": "cannot bind: address in use",
	} {
		must.NoError(t, files.Write("/var/log/pods/0.log", []byte(text), 0o600))
		if got := lastLine(files, "/var/log/pods/0.log"); got != want {
			t.Errorf("%q: got %q", text, got)
		}
	}
	if got := lastLine(files, "/var/log/pods/1.log"); got != "it has no log" {
		t.Errorf("without a log: got %q", got)
	}
}

// TestAContainerThatNeverStarted has no time of its start, and the reason is CRI's.
func TestAContainerThatNeverStarted(t *testing.T) {
	p := StaticPod{Name: "kube-apiserver-a"}
	for want, status := range map[string]*runtime.ContainerStatus{
		"kube-apiserver-a does not start": {Id: "1", ExitCode: 128, FinishedAt: 1_700_000_000_000_000_000,
			Reason: "StartError", Message: "no such device"},
		"kube-apiserver-a ended with exit code 137 (killed) after 2s": {
			Id: "2", ExitCode: 137, StartedAt: 1_700_000_000_000_000_000, FinishedAt: 1_700_000_002_000_000_000,
			Reason: "OOMKilled"},
	} {
		end := p.endOf(status)
		if end.String() != want {
			t.Errorf("got %s, want %s", end, want)
		}
		if status.StartedAt == 0 && end.Failed != "StartError: no such device" {
			t.Errorf("failed: %q", end.Failed)
		}
	}
}
