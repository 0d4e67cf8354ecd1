package local

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestVersionSkewOnAHost(t *testing.T) {
	for name, c := range map[string]struct {
		role, running, wanted, etcd string // etcd: what the user set
		started                     string // etcd that a later run started; "": none
		problem                     string // "": none
	}{
		"a fresh host":                            {"", "", "v1.37.2", "", "", ""},
		"the same":                                {ControlPlane, "v1.36.3", "v1.36.3", "", "", ""},
		"a newer patch":                           {ControlPlane, "v1.36.1", "v1.36.3", "", "", ""},
		"an older patch":                          {ControlPlane, "v1.36.3", "v1.36.1", "", "", "cannot go back from v1.36.3 to v1.36.1"},
		"an older minor version":                  {Worker, "v1.36.3", "v1.35.4", "", "", "cannot go back"},
		"a skipped minor version":                 {ControlPlane, "v1.34.4", "v1.36.3", "", "", "no minor version may be skipped"},
		"the next minor version":                  {Worker, "v1.36.3", "v1.37.2", "", "", "only `kube-bootstrap upgrade` installs"},
		"an older etcd":                           {ControlPlane, "v1.37.2", "v1.37.2", "v3.6.16", "", "etcd cannot go back from 3.7.3 to 3.6.16"},
		"an older etcd, but no member":            {Worker, "v1.37.2", "v1.37.2", "v3.6.16", "", ""},
		"a run with a newer etcd that was killed": {ControlPlane, "v1.36.3", "v1.36.3", "", "3.7.0-0", "etcd cannot go back from 3.7.0-0 to 3.6"},
		"the run after it, with that etcd":        {ControlPlane, "v1.36.3", "v1.36.3", "v3.7.1", "3.7.0-0", ""},
	} {
		h := &Host{Files: host.Files{Root: t.TempDir()}}
		h.Saved.Role, h.Saved.Config.KubernetesVersion = c.role, c.running
		h.Config.KubernetesVersion, h.Config.EtcdVersion = c.wanted, c.etcd
		if made, err := image.For(c.running, image.Versions{}); err == nil {
			keepVersions(t, h.Files, made)
			startedEtcd(t, h.Files, cmp.Or(c.started, made.Etcd))
		}
		if err := h.UseCatalogue(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		isSkewed(t, name, SkewProblem(h, c.role), c.problem)
	}
}

func TestVersionSkewOfAJoiningHost(t *testing.T) {
	for name, c := range map[string]struct {
		controlPlane   bool
		wanted, server string
		problem        string
	}{
		"a worker like the master":           {false, "v1.36.3", "v1.36.3", ""},
		"an older worker":                    {false, "v1.34.4", "v1.36.3", ""},
		"a newer worker":                     {false, "v1.37.2", "v1.36.3", "must not be newer"},
		"a control plane of another patch":   {true, "v1.36.1", "v1.36.3", ""},
		"a control plane of another version": {true, "v1.35.4", "v1.36.3", "same minor version"},
	} {
		h := &Host{Files: host.Files{Root: t.TempDir()}}
		h.Config.Join, h.Versions.Kubernetes = c.controlPlane, c.wanted
		isSkewed(t, name, joinSkewProblem(h, c.server), c.problem)
	}
}

// TestAnUpgradeFollowsTheJoin: the join data of a host name the version at the time of its join.
func TestAnUpgradeFollowsTheJoin(t *testing.T) {
	for name, c := range map[string]struct{ role, wanted, problem string }{
		"a worker":           {Worker, "v1.37.2", ""},
		"a control plane":    {ControlPlane, "v1.37.2", ""},
		"an older kubelet":   {Worker, "v1.36.3", ""},
		"the version before": {ControlPlane, "v1.36.3", "same minor version"},
	} {
		h := &Host{Files: host.Files{Root: t.TempDir()}}
		h.Saved.Role, h.Saved.Config.KubernetesVersion = c.role, "v1.37.2"
		h.Config.Join, h.Versions.Kubernetes = c.role == ControlPlane, c.wanted
		isSkewed(t, name, joinSkewProblem(h, "v1.36.3"), c.problem)
	}
}

func TestAWorkerNeedsNoImageOfEtcd(t *testing.T) {
	h := &Host{Files: host.Files{Root: t.TempDir()}}
	h.Config.KubernetesVersion = "v1.37.2"
	if err := h.UseCatalogue(); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]bool{ControlPlane: true, Worker: false} {
		got := slices.ContainsFunc(h.ImagesOf(role), func(i image.Image) bool { return i.Name == "etcd" })
		if got != want {
			t.Errorf("%s: got %v, want %v", role, got, want)
		}
	}
}

func startedEtcd(t *testing.T, files host.Files, version string) {
	t.Helper()
	if err := files.Write("/var/lib/kube-bootstrap/etcd-version", []byte(version+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func keepVersions(t *testing.T, files host.Files, v image.Versions) {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.Write(VersionsFile, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func isSkewed(t *testing.T, name string, err error, want string) {
	t.Helper()
	problems := step.Problems(err)
	switch {
	case want == "" && err == nil:
	case want != "" && len(problems) == 1 && problems[0].Name == "version-skew" && strings.Contains(problems[0].Text, want):
	default:
		t.Errorf("%s: got %v, want %q", name, err, want)
	}
}
