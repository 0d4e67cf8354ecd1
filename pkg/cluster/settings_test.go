package cluster

import (
	"strings"
	"testing"
)

// settingsOf are those of options whose program is this test.
func settingsOf(t *testing.T, o Options) settings {
	t.Helper()
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	o, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	s, err := o.settings()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestWhatMakesAnotherCluster(t *testing.T) {
	then := settingsOf(t, Options{Workers: 1, Kubernetes: "v1.36.3"})
	for want, o := range map[string]Options{
		"Workers was 1 and is 2":                      {Workers: 2, Kubernetes: "v1.36.3"},
		"Kubernetes was v1.36.3 and is v1.35.4":       {Workers: 1, Kubernetes: "v1.35.4"},
		"MasterArgs was not set and is [\"--x=1\"]":   {Workers: 1, Kubernetes: "v1.36.3", MasterArgs: []string{"--x=1"}},
		"HostImage was docker-28.5 and is sysv":       {Workers: 1, Kubernetes: "v1.36.3", HostImage: "sysv"},
		"Nodes was not set and is [{\"name\":\"web\"": {Workers: 1, Kubernetes: "v1.36.3", Nodes: []Spec{{Name: "web", Role: Master}}},
	} {
		if got := then.differ(settingsOf(t, o)); !strings.HasPrefix(got, want) {
			t.Errorf("differs by %q, want %q", got, want)
		}
	}
}

func TestWhatMakesTheSameCluster(t *testing.T) {
	then := settingsOf(t, Options{Workers: 1})
	bundle := t.TempDir()
	for _, o := range []Options{
		{Workers: 1}, {Workers: 1, Masters: 1, Name: "kube", Subnet: DefaultSubnet}, {Workers: 1, Retain: true, FirstSnapshot: true, Bundle: bundle},
	} {
		if got := then.differ(settingsOf(t, o)); got != "" {
			t.Errorf("differs by %q", got)
		}
	}
	if got := settings(nil).differ(then); !strings.Contains(got, "Workers was not set and is 1") {
		t.Errorf("none and some differ by %q", got)
	}
}

func TestTheVersionIsRead(t *testing.T) {
	if v := settingsOf(t, Options{Kubernetes: "v1.36.3"}).version(); v != "v1.36.3" {
		t.Errorf("version %q", v)
	}
	if v := settings(nil).version(); v != "" {
		t.Errorf("version of no settings %q", v)
	}
}
