package controlplane

import (
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// overridable are the flags that the control plane sets and that a user may set
// to other values.
var overridable = map[string][]string{
	"kube-apiserver": {
		"audit-log-maxage", "audit-log-maxbackup", "audit-log-maxsize", "enable-admission-plugins",
		"kubelet-preferred-address-types", "profiling",
		"service-account-extend-token-expiration", "shutdown-delay-duration", "shutdown-send-retry-after",
	},
	"kube-controller-manager": {"cluster-signing-duration", "controllers", "kube-api-burst", "kube-api-qps",
		"profiling", "terminated-pod-gc-threshold"},
	"kube-scheduler": {"kube-api-burst", "kube-api-qps", "profiling"},
}

// TestOwnFlagsAreKept checks that a user cannot set any other flag that the
// control plane sets.
func TestOwnFlagsAreKept(t *testing.T) {
	c := fresh(t)
	c.LeafLife = 1
	s := pods(c)
	for _, p := range []component{s.apiserver(nil), s.manager(), s.scheduler()} {
		var free []string
		for _, arg := range flagsOf(t, s, p.name) {
			name, _, _ := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
			own := config.Default()
			own.Components.APIServer.ExtraArgs = forProgram(p, "kube-apiserver", name)
			own.Components.ControllerManager.ExtraArgs = forProgram(p, "kube-controller-manager", name)
			own.Components.Scheduler.ExtraArgs = forProgram(p, "kube-scheduler", name)
			if len(own.Validate("")) == 0 {
				free = append(free, name)
			}
		}
		slices.Sort(free)
		if !slices.Equal(free, overridable[p.name]) {
			t.Errorf("%s: a user may set %q, want %q", p.name, free, overridable[p.name])
		}
	}
}

func forProgram(p component, program, name string) config.Arguments {
	if p.name != program {
		return nil
	}
	return config.Arguments{name: "x"}
}

func TestExtraArgs(t *testing.T) {
	s := pods(fresh(t))
	s.ExtraArgs = func(string) config.Arguments { return config.Arguments{"profiling": "true", "v": "4"} }
	for _, p := range []component{s.apiserver(nil), s.manager(), s.scheduler()} {
		data, err := s.manifest(p)
		var pod corev1.Pod
		if err != nil || yaml.UnmarshalStrict(data, &pod) != nil {
			t.Fatal(err)
		}
		command := pod.Spec.Containers[0].Command
		if command[0] != p.name || !slices.Contains(command, "--profiling=true") ||
			slices.Contains(command, "--profiling=false") || !slices.Contains(command, "--v=4") {
			t.Errorf("%s: %q", p.name, command)
		}
	}
}
