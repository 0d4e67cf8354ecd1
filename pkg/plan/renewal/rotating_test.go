package renewal

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/rotation"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func names(plan step.Plan) (all []string) {
	for _, stage := range plan {
		for _, s := range stage {
			all = append(all, s.Name)
		}
	}
	return all
}

// TestTheOrderOfARotation: no control plane uses a key before all accept it, and none drops the
// old one before all use the new one and nothing depends on the old one.
func TestTheOrderOfARotation(t *testing.T) {
	h := &local.Host{Config: config.Default(), Files: host.Files{Root: t.TempDir()}, Saved: local.Saved{Role: local.ControlPlane}}
	for subject, want := range map[string][]string{
		controlplane.EncryptionKey: {
			"make a new encryption key", "withdraw the keys for joining control planes",
			"have every control plane accept the new key", "have every control plane use the new key",
			"encrypt all Secrets with the new key",
			"have every control plane drop the old key", "end the rotation",
		},
		controlplane.AccountKey: {
			"make a new service account key", "withdraw the keys for joining control planes",
			"have every control plane accept the new key", "have every control plane use the new key",
			"sign the tokens in Secrets with the new key", "find out when the last token of the old key is replaced",
			"have every control plane drop the old key", "end the rotation",
		},
	} {
		if got := names(append(Rotation(h, subject), EndRotation(h, subject)...)); !slices.Equal(got, want) {
			t.Errorf("%s:\n%s\nwant\n%s", subject, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	workers := []string{
		"have every control plane accept the new authorities", "have every worker accept the new authorities",
		"have every control plane use the new authorities", "have every worker use the new authorities",
	}
	got := names(Rotation(h, rotation.Authorities))
	if len(got) < len(workers) || !slices.Equal(got[len(got)-len(workers):], workers) {
		t.Errorf("the authorities:\n%s", strings.Join(got, "\n"))
	}
}

// cluster answers requests for the state of a rotation and for nodes.
type cluster struct {
	state *rotation.Rotation
	noted map[string]string // the phase that the host of a node has noted
}

func (c cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name := path.Base(r.URL.Path)
	noted, node := c.noted[name]
	switch {
	case name == rotation.SecretName && c.state != nil:
		data, _ := json.Marshal(c.state)
		_ = json.NewEncoder(w).Encode(corev1.Secret{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, Data: map[string][]byte{"rotation.json": data},
		})
	case node:
		_ = json.NewEncoder(w).Encode(corev1.Node{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Node"},
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"kube-bootstrap.dev/rotation": noted}},
		})
	default:
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(metav1.Status{Status: metav1.StatusFailure, Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound})
	}
}

func (c cluster) rotating(t *testing.T) rotating {
	t.Helper()
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	store := rotation.StateStore{API: func() (*rest.Config, error) { return &rest.Config{Host: server.URL}, nil }}
	return rotating{subject: "encryption-key", store: store}
}

func reachesUse(r rotating) step.Step {
	hosts := func(context.Context) ([]string, error) { return []string{"one", "two"}, nil }
	publish := func(context.Context, rotation.Rotation) error { return nil }
	return r.reachOn("control plane", hosts, rotation.Use, publish)
}

// TestWhoHasNotReachedAPhase: the difference names the hosts.
func TestWhoHasNotReachedAPhase(t *testing.T) {
	const name = "have every control plane use the new key"
	for _, c := range []struct {
		phase rotation.Phase
		noted map[string]string
		want  string
	}{
		{rotation.Accept, nil, name},
		{rotation.Use, map[string]string{"one": "a/2", "two": "a/1"}, name + ": two"},
		{rotation.Use, map[string]string{"one": "a/2"}, name + ": two"},
		{rotation.Use, map[string]string{"one": "a/2", "two": "a/2"}, ""},
		{rotation.Drop, nil, ""}, // an interrupted command continues after it
	} {
		r := cluster{&rotation.Rotation{ID: "a", Subject: "encryption-key", Phase: c.phase}, c.noted}.rotating(t)
		if diff, err := reachesUse(r).Check(t.Context()); diff.String() != c.want || err != nil {
			t.Errorf("in phase %d with %v: %q, %v, want %q", c.phase, c.noted, diff, err, c.want)
		}
	}
}

// TestARotationWaitsForHosts: the problem names the hosts that are off.
func TestARotationWaitsForHosts(t *testing.T) {
	state := &rotation.Rotation{ID: "a", Subject: "encryption-key", Phase: rotation.Use}
	r := cluster{state, map[string]string{"one": "a/2", "two": "a/1"}}.rotating(t)
	problems := step.Problems(reachesUse(r).Apply(step.WithLimit(t.Context(), 100*time.Millisecond)))
	if len(problems) != 1 || problems[0].Name != "host-away" || problems[0].Text != "hosts two do not use the new key" {
		t.Errorf("got %v", problems)
	}
	r = cluster{state, map[string]string{"one": "a/2", "two": "a/2"}}.rotating(t)
	must.NoError(t, reachesUse(r).Apply(t.Context()))
}

// TestARotationThatAnotherCommandHasEnded: the steps left have nothing to follow.
func TestARotationThatAnotherCommandHasEnded(t *testing.T) {
	if _, err := reachesUse(cluster{}.rotating(t)).Check(t.Context()); err == nil || !strings.Contains(err.Error(), "another command has ended") {
		t.Errorf("got %v", err)
	}
}

// TestHowLongTokensLive: the tokens of a pod live as long as it requests.
func TestHowLongTokensLive(t *testing.T) {
	projected := func(seconds ...int64) (pod corev1.Pod) {
		for _, life := range seconds {
			source := corev1.VolumeProjection{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{ExpirationSeconds: &life}}
			pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{VolumeSource: corev1.VolumeSource{
				Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{source, {}}},
			}})
		}
		return pod
	}
	for want, pod := range map[time.Duration]corev1.Pod{
		0:                {Spec: corev1.PodSpec{Volumes: []corev1.Volume{{}}}},
		10 * time.Minute: projected(600),
		2 * time.Hour:    projected(600, 7200, 3600),
	} {
		if got := tokenLifeOf(pod); got != want {
			t.Errorf("got %v, want %v", got, want)
		}
	}
}
