package cluster

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestHostsFindTheProgramsBesideTheBundle(t *testing.T) {
	dir := t.TempDir()
	file := func(name string) string {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Write(t, path, name)
		return path
	}
	bundle := file("b")
	engine := &docker.Engine{Address: docker.DefaultAddress}
	s := session.New(session.Selection{Name: "k", CacheDir: filepath.Join(dir, "cache")},
		containers.DockerProvider{Engine: engine}, nil)
	cluster, err := containers.Of(s)
	must.NoError(t, err)
	share := func(version string) BuiltComponents {
		t.Helper()
		o := Options{
			Bundle: bundle, Components: BuiltComponents{
				Bundle: file("p"), Versions: map[string]string{"kubelet": version},
			},
		}
		must.NoError(t, o.setup(cluster, topology.Topology{}).Share().Apply(t.Context()))
		return o.Components
	}
	inSnapshot := share("v1.36.3+000")
	share("v1.36.3+aaa")
	components := share("v1.36.3+bbb")
	must.NoError(t, dropOldComponents(t.Context(), s, []string{inSnapshot.note(), components.note()}, ""))
	found, err := filepath.Glob(filepath.Join(s.SharedDir(), "*"))
	if err != nil || len(found) != 3 {
		t.Errorf("hosts see %q, %v", found, err)
	}
	if _, err := os.Stat(filepath.Join(s.SharedDir(), componentsName(inSnapshot.note()))); err != nil {
		t.Error(err)
	}
	args := source{shared: true, components: components.note()}.args()
	if len(args) != 4 || args[3] != testhost.SharedDir+"/"+session.BundleName {
		t.Fatalf("arguments %q", args)
	}
	if _, err := os.Stat(filepath.Join(s.SharedDir(), filepath.Base(args[1]))); err != nil {
		t.Error(err)
	}
}

func TestANodeIsAskedWhatItRuns(t *testing.T) {
	versions := map[string]string{"kube-apiserver": "v1.36.3+a", "kubelet": "v1.36.3+b"}
	both := `{"kube-apiserver": "v1.36.3+a", "kubelet": "v1.36.3+b"}`
	for name, c := range map[string]struct {
		role   topology.Role
		report string
		want   bool
	}{
		"a master that has all": {topology.ControlPlane, `{"upToDate": true, "programs": ` + both + `}`, true},
		"interrupted run": {topology.ControlPlane, `{"upToDate": false, "programs": ` + both + `}`,
			false},
		"other version": {topology.ControlPlane,
			`{"upToDate": true, "programs": {"kube-apiserver": "v1.36.3+z", "kubelet": "v1.36.3+b"}}`, false},
		"no components": {topology.ControlPlane, `{"upToDate": true}`, false},
		"a worker that has its own": {topology.Worker, `{"upToDate": true, "programs": {"kubelet": "v1.36.3+b"}}`,
			true},
		"a worker that has the release": {topology.Worker, `{"upToDate": true}`, false},
		"no output":                     {topology.Worker, ``, false},
	} {
		if got := upToDate(versions,
			remote.HostStatus{Role: c.role, Report: json.RawMessage(c.report)}); got != c.want {
			t.Errorf("%s: up to date %t, want %t", name, got, c.want)
		}
	}
}

func TestWhatKeepsANodeFromRunningItsPrograms(t *testing.T) {
	want := image.Versions{
		Kubernetes: "v1.36.3", Programs: map[string]string{"kubelet": "v1.36.3+b", "kube-proxy": "v1.36.3+c"},
	}
	worker := topology.ClusterNode{Name: "k-worker-1", Role: topology.Worker}
	node := func(version string) []corev1.Node {
		n := corev1.Node{}
		n.Name, n.Status.NodeInfo.KubeletVersion = worker.Name, version
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
		return []corev1.Node{n}
	}
	pod := func(ref string, ready corev1.ConditionStatus) []corev1.Pod {
		p := corev1.Pod{
			Spec: corev1.PodSpec{
				NodeName: worker.Name, Containers: []corev1.Container{{Name: "kube-proxy", Image: ref}},
			},
		}
		p.Name, p.Status.Conditions = "kube-proxy-x", []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}
		return []corev1.Pod{p}
	}
	ref := image.ProgramRef(want, "kube-proxy")
	for text, c := range map[string]struct {
		nodes []corev1.Node
		pods  []corev1.Pod
	}{
		"knows no node k-worker-1":                       {nil, pod(ref, corev1.ConditionTrue)},
		"still has version v1.36.3 instead of v1.36.3+b": {node("v1.36.3"), pod(ref, corev1.ConditionTrue)},
		"runs no kube-proxy":                             {node("v1.36.3+b"), nil},
		"still runs image kube-bootstrap.dev/hyperkube:v1": {node("v1.36.3+b"),
			pod("kube-bootstrap.dev/hyperkube:v1", corev1.ConditionTrue)},
		"pod kube-proxy-x is not Ready": {node("v1.36.3+b"), pod(ref, corev1.ConditionFalse)},
	} {
		if err := runs(worker, want, c.nodes, c.pods); err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("got %v, want %s", err, text)
		}
	}
	if err := runs(worker, want, node("v1.36.3+b"), pod(ref, corev1.ConditionTrue)); err != nil {
		t.Error(err)
	}
}
