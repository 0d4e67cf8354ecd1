package upgrade

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheTargetIsOfTheNextMinorVersion(t *testing.T) {
	newest := catalog.Newest()
	for name, c := range map[string]struct {
		from, wanted string
		to, problem  string
	}{
		"the newest patch by default": {"v1.36.1", "", newest.Patch, ""},
		"a minor version":             {"v1.36.1", "1.37", newest.Patch, ""},
		"a release":                   {"v1.36.1", "v1.37.0", "v1.37.0", ""},
		"a skipped version":           {"v1.34.4", "1.36", "", "no minor version may be skipped"},
		"a downgrade":                 {"v1.36.3", "1.35", "", "cannot go back"},
		"a patch":                     {"v1.36.1", "v1.36.3", "", "same minor version"},
		"an unknown version":          {"v1.36.1", "1.99", "", "must be a release of Kubernetes"},
		"nothing newer":               {newest.Patch, "", "", "no version of Kubernetes after"},
	} {
		to, err := Target(c.from, c.wanted)
		if to != c.to {
			t.Errorf("%s: got %s, want %s", name, to, c.to)
		}
		expect(t, name, err, "upgrade-version", c.problem)
	}
}

func TestAnUnfinishedUpgradeLimitsTheCommands(t *testing.T) {
	begun := func(p Phase) Record {
		return Record{From: image.Versions{Kubernetes: "v1.36.3"}, To: image.Versions{Kubernetes: "v1.37.2"}, Phase: p}
	}
	for name, c := range map[string]struct {
		record         Record
		next, rollback string // names of problems
	}{
		"none":      {Record{}, "", "upgrade-none"},
		"emulating": {begun(Emulating), "", ""},
		"finishing": {begun(Finishing), "upgrade-unfinished", "upgrade-unfinished"},
	} {
		expect(t, name, c.record.Next("v1.37.2"), c.next, "")
		expect(t, name, c.record.Returnable(), c.rollback, "")
	}
	expect(t, "another target", begun(Emulating).Next("v1.37.1"), "upgrade-unfinished", "")
}

// expect compares a problem by its name, and by a part of its text.
func expect(t *testing.T, what string, err error, name, text string) {
	t.Helper()
	problems := step.Problems(err)
	switch {
	case name == "" || name == "upgrade-version" && text == "":
		must.NoError(t, err)
	case len(problems) != 1 || problems[0].Name != name || !strings.Contains(problems[0].Text, text):
		t.Errorf("%s: got %v, want %q [%s]", what, err, text, name)
	}
}

func TestARecordIsReadAgain(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	none, err := Read(files)
	must.NoError(t, err)
	if none.Begun() || none.Emulated() != "" {
		t.Errorf("got %+v", none)
	}
	r := Record{
		From: image.Versions{Kubernetes: "v1.36.3"}, To: image.Versions{Kubernetes: "v1.37.2"}, Phase: Emulating,
		Since: time.Now().UTC().Truncate(time.Second),
	}
	must.NoError(t, File.Write(files, r))
	again, err := Read(files)
	must.NoError(t, err)
	if again.To.Kubernetes != "v1.37.2" || again.Emulated() != "v1.36.3" || !again.Since.Equal(r.Since) {
		t.Errorf("got %+v", again)
	}
	must.NoError(t, files.Write(File.Path, []byte(`{"phase":"other"}`), 0o600))
	if _, err := Read(files); !host.IsDamaged(err) {
		t.Errorf("got %v", err)
	}
}

func TestTheMetricsNameRemovedAPIs(t *testing.T) {
	const page = `# TYPE apiserver_requested_deprecated_apis gauge
apiserver_requested_deprecated_apis{group="a.example",removed_release="1.37",resource="things",subresource="",version="v1beta1"} 1
apiserver_requested_deprecated_apis{group="",removed_release="",resource="componentstatuses",subresource="",version="v1"} 1
apiserver_requested_deprecated_apis{group="b.example",removed_release="1.38",resource="later",subresource="",version="v1"} 1
# TYPE other counter
other 1
`
	apis, err := removedIn([]byte(page), "v1.37.2")
	must.NoError(t, err)
	if got := strings.Join(apis, ", "); got != "a.example/v1beta1 things" {
		t.Errorf("got %q", got)
	}
}

func TestMembersOfEtcdBlockAnUpgrade(t *testing.T) {
	for name, c := range map[string]struct {
		member  Etcd
		problem string
	}{
		"a new patch":      {Etcd{"a", "3.6.16", true}, ""},
		"an old patch":     {Etcd{"a", "3.6.8", true}, "etcd-patch"},
		"a member is down": {Etcd{"a", "", false}, "etcd-unhealthy"},
	} {
		expect(t, name, OldEtcd([]Etcd{c.member}, "3.7.3"), c.problem, "")
	}
	expect(t, "the same minor version", OldEtcd([]Etcd{{"a", "3.6.8", true}}, "3.6.16"), "", "")
}

func TestControlPlanesComeFirst(t *testing.T) {
	nodes := []Node{{"w", worker, "v1.36.3"}, {"m", controlPlane, "v1.36.3"}}
	from, to := image.Versions{Kubernetes: "v1.36.3", Etcd: "3.6.16"}, image.Versions{Kubernetes: "v1.37.2", Etcd: "3.7.3"}
	var order []string
	for _, s := range Steps(nodes, from, to) {
		order = append(order, s.Command+" "+s.Node)
	}
	const want = "upgrade apply m, upgrade apply w, upgrade finish m, upgrade finish w"
	if got := strings.Join(order, ", "); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAKubeletThatIsTooOldBlocksAnUpgrade(t *testing.T) {
	expect(t, "three older", OldKubelets([]Node{{"w", worker, "v1.34.0"}}, "v1.37.2"), "", "")
	expect(t, "four older", OldKubelets([]Node{{"w", worker, "v1.33.0"}}, "v1.37.2"), "kubelet-skew", "node w")
}
