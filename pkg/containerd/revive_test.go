package containerd

import (
	"context"
	"net"
	"path/filepath"
	"testing"
	"time"

	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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
		"none yet":                       {nil, false},
		"starting":                       {[]*runtime.Container{container(101, running)}, false},
		"older than etcd":                {[]*runtime.Container{container(99, running)}, true},
		"ended":                          {[]*runtime.Container{container(101, exited)}, true},
		"ended, then started again":      {[]*runtime.Container{container(102, running), container(101, exited)}, false},
		"ended twice":                    {[]*runtime.Container{container(101, exited), container(102, exited)}, true},
		"created, not started, by now":   {[]*runtime.Container{container(99, runtime.ContainerState_CONTAINER_CREATED)}, false},
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
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	pod := StaticPod{Name: "kube-apiserver-a", Ready: func(context.Context) error { return nil }}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := (Runtime{Socket: socket}).Revive(pod).Apply(ctx); err != nil {
		t.Error(err)
	}
}

func TestAContainerdThatIsSilentIsNotAskedForEver(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "containerd.sock")
	listener, err := net.Listen("unix", socket) // nobody accepts
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	_, _, err = (Runtime{Socket: socket}).hasNamespace(step.WithLimit(t.Context(), 100*time.Millisecond))
	if !step.IsUnanswered(err) {
		t.Errorf("got %v", err)
	}
}
