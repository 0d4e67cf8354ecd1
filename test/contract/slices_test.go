//go:build hosttest

package contract

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// podSlices creates the units that the kubelet and runc create with the systemd
// driver for one pod. The pod's process ignores SIGTERM.
const podSlices = `set -e
slice() { busctl call org.freedesktop.systemd1 /org/freedesktop/systemd1 org.freedesktop.systemd1.Manager \
	StartTransientUnit 'ssa(sv)a(sa(sv))' $1.slice replace 2 DefaultDependencies b false CPUWeight t 100 0; }
slice kubepods; slice kubepods-besteffort; slice kubepods-burstable; slice kubepods-burstable-pod11_22
systemd-run --scope --slice=kubepods-burstable-pod11_22 --unit=cri-containerd-33 \
	sh -c 'trap "" TERM; while :; do sleep 600; done' >/dev/null 2>&1 &
for i in $(seq 100); do systemctl -q is-active cri-containerd-33.scope && exit 0; sleep 0.1; done; exit 1`

// TestSlicesOfPods: Undo of the step that runs pods removes their slices.
func TestSlicesOfPods(t *testing.T) {
	before := world(t)
	h, err := local.Open(config.Default())
	must.NoError(t, err)
	all := plan.ControlPlane(h).Steps()
	pods := all[slices.IndexFunc(all, func(s step.Step) bool { return s.ID == containerd.PodsID })]
	must.NoError(t, pods.Apply(t.Context()))
	if _, err := host.Run(t.Context(), "sh", "-c", podSlices); err != nil {
		t.Fatal(err)
	}
	if err := pods.Undo(t.Context()); err != nil {
		t.Error(err)
	}
	units, err := host.Run(t.Context(), "systemctl", "list-units", "--all", "--no-legend", "kubepods*",
		"cri-containerd-33*")
	files, _ := filepath.Glob("/run/systemd/transient/kubepods*") // the pattern is valid
	groups, _ := host.Run(t.Context(), "find", "/sys/fs/cgroup", "-name", "kubepods*")
	if units != "" || err != nil || len(files) > 0 || groups != "" {
		t.Errorf("left: units %q (%v), files %v, control groups %q", units, err, files, groups)
	}
	if err := os.RemoveAll(host.StateDir); err != nil { // another step of the plan would revert this
		t.Error(err)
	}
	if diff := hosttest.Diff(before, world(t)); len(diff) > 0 {
		t.Errorf("the host has changed:\n%s", strings.Join(diff, "\n"))
	}
}
