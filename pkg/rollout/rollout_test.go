package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// nodes answers requests for nodes: it returns their annotations and merges patches of them.
type nodes struct {
	mu  sync.Mutex
	all map[string]map[string]string // annotations by name of the node
}

func (n *nodes) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	defer n.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	annotations, found := n.all[name]
	if !found {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{
			Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound,
		})
		return
	}
	if r.Method == http.MethodPatch {
		var patch struct{ Metadata metav1.ObjectMeta }
		if err := json.NewDecoder(r.Body).Decode(&patch); err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		for key, value := range patch.Metadata.Annotations {
			annotations[key] = value
		}
	}
	_ = json.NewEncoder(w).Encode(corev1.Node{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
	})
}

const annotation = "example.com/phase"

// serve returns the notes of nodes, whose hosts have noted nothing yet.
func serve(t *testing.T, names ...string) Annotations {
	t.Helper()
	n := &nodes{all: map[string]map[string]string{}}
	for _, name := range names {
		n.all[name] = map[string]string{}
	}
	server := httptest.NewServer(n)
	t.Cleanup(server.Close)
	connect := func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }
	return Annotations{API: kube.Connect(connect), Annotation: annotation, Operation: "the test"}
}

func hosts(names ...string) Hosts {
	return func(context.Context) ([]string, error) { return names, nil }
}

// TestWhatAHostHasPassed: an ID is a time in UTC, to the second, in digits of a fixed number.
func TestWhatAHostHasPassed(t *testing.T) {
	const first, second = "2026-09-30T23:59:59Z", "2026-10-01T00:00:00Z"
	for _, c := range []struct {
		of    OperationPhase
		noted string
		want  bool
	}{
		{OperationPhase{first, 2}, "", false},
		{OperationPhase{first, 2}, "unreadable", false},
		{OperationPhase{first, 2}, first + "/1", false},
		{OperationPhase{first, 2}, first + "/2", false},
		{OperationPhase{first, 2}, first + "/3", true},
		{OperationPhase{first, 3}, second + "/1", true},
		{OperationPhase{second, 1}, first + "/3", false},
	} {
		if got := c.of.before(c.noted); got != c.want {
			t.Errorf("%v after %q: %t", c.of, c.noted, got)
		}
	}
}

// TestWhoIsBehind: a host without a node has reached nothing.
func TestWhoIsBehind(t *testing.T) {
	notes, phase := serve(t, "one", "two"), OperationPhase{"2026-09-30T23:59:59Z", 1}
	group := HostGroup{Hosts: hosts("one", "two", "gone"), Annotations: notes}
	must.NoError(t, notes.Note(t.Context(), phase, "two"))
	for number, want := range map[int][]string{1: {"one", "gone"}, 2: {"one", "two", "gone"}} {
		got, err := group.Behind(t.Context(), OperationPhase{phase.ID, number})
		if !slices.Equal(got, want) || err != nil {
			t.Errorf("phase %d: %q, %v, want %q", number, got, err, want)
		}
	}
	for number, want := range map[int]bool{0: true, 1: false, 2: false} {
		passed, err := notes.Passed(t.Context(), OperationPhase{phase.ID, number}, "two")
		if passed != want || err != nil {
			t.Errorf("phase %d is passed: %t, %v", number, passed, err)
		}
	}
	if passed, err := notes.Passed(t.Context(), phase, "gone"); passed || err != nil {
		t.Errorf("a host without a node: %t, %v", passed, err)
	}
	if err := notes.Note(t.Context(), phase, "gone"); err == nil {
		t.Error("a host without a node has noted a phase")
	}
}

// TestAWaitEndsOnceAllHostsHaveNotedThePhase: each agent notes it in its own time.
func TestAWaitEndsOnceAllHostsHaveNotedThePhase(t *testing.T) {
	notes, phase := serve(t, "one", "two"), OperationPhase{"2026-09-30T23:59:59Z", 1}
	must.NoError(t, notes.Note(t.Context(), phase, "one"))
	looks := 0
	current := func(ctx context.Context) (OperationPhase, error) {
		if looks++; looks == 3 {
			return phase, notes.Note(ctx, phase, "two")
		}
		return phase, nil
	}
	group := HostGroup{Hosts: hosts("one", "two"), Annotations: notes}
	must.NoError(t, group.Await(step.WithLimit(t.Context(), 20*time.Second), current))
	if looks != 3 {
		t.Errorf("%d looks", looks)
	}
}

// TestAWaitNamesTheHostsThatAreBehind: an administrator must start them.
func TestAWaitNamesTheHostsThatAreBehind(t *testing.T) {
	notes, phase := serve(t, "one", "two"), OperationPhase{"2026-09-30T23:59:59Z", 1}
	must.NoError(t, notes.Note(t.Context(), phase, "one"))
	current := func(context.Context) (OperationPhase, error) { return phase, nil }
	group := HostGroup{Hosts: hosts("one", "two"), Annotations: notes}
	err := group.Await(step.WithLimit(t.Context(), 100*time.Millisecond), current)
	late, ok := errors.AsType[*BehindError](err)
	if !ok || !slices.Equal(late.Hosts, []string{"two"}) {
		t.Errorf("got %v", err)
	}
}

// TestAWaitEndsWithTheOperation: another command may have ended it.
func TestAWaitEndsWithTheOperation(t *testing.T) {
	ended := errors.New("another command has ended the operation")
	current := func(context.Context) (OperationPhase, error) { return OperationPhase{}, step.Final(ended) }
	group := HostGroup{Hosts: hosts("one"), Annotations: serve(t, "one")}
	if err := group.Await(t.Context(), current); !errors.Is(err, ended) {
		t.Errorf("got %v", err)
	}
}
