package config

import (
	"strings"
	"testing"
)

func TestAFieldThatTheKubeletDoesNotHave(t *testing.T) {
	c := Default()
	c.KubernetesVersion, c.KubeletConfig = "v1.36.3", `{"tlsCurvePreferences":[29],"maxPods":50}`
	if errs := c.Validate(""); len(errs) > 0 {
		t.Errorf("1.36 has it: %v", errs)
	}
	c.KubernetesVersion = "v1.35.4"
	c.Nodes = []NodeEntry{{Role: RoleControlPlane, Count: 1,
		Settings: Config{KubeletConfig: `{"defaultPodSysctls":{}}`}}}
	got := c.Validate("").ToAggregate()
	for _, want := range []string{"kubeletConfig: ",
		"tlsCurvePreferences needs Kubernetes 1.36 or newer, and the version is v1.35.4",
		"nodes[0].kubelet: ", "defaultPodSysctls needs Kubernetes 1.37 or newer"} {
		if got == nil || !strings.Contains(got.Error(), want) {
			t.Errorf("got %v, want %q", got, want)
		}
	}
}
