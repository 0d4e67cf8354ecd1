package controlplane

import (
	"os"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTheLogOfTheLastRunIsShown: after ten restarts, and after a change of the pod.
func TestTheLogOfTheLastRunIsShown(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	started := time.Now().Add(-time.Hour)
	for i, name := range []string{"1a/kube-apiserver/9.log", "1a/kube-apiserver/10.log", "0b/kube-apiserver/0.log"} {
		path := files.Path(podLogDir + "/kube-system_kube-apiserver-node-1_" + name)
		at := started.Add(time.Duration(i) * time.Minute)
		must.Write(t, path, "says "+name)
		must.NoError(t, os.Chtimes(path, at, at))
		if got := explain(files); !strings.HasSuffix(got, "says "+name) {
			t.Errorf("shown is %s, want %s", got, name)
		}
	}
}

// TestALeaderWithAnotherClock: a host may join if clocks differ by minutes.
func TestALeaderWithAnotherClock(t *testing.T) {
	lease := func(holder string, renewed time.Time) *coordinationv1.Lease {
		at := metav1.NewMicroTime(renewed)
		return &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, RenewTime: &at}}
	}
	for _, skew := range []time.Duration{-4 * time.Minute, 0, 4 * time.Minute} {
		check, there := held(), time.Now().Add(skew)
		if err := check(lease("", there)); err == nil {
			t.Errorf("%s: without a leader", skew)
		}
		if err := check(lease("one", there)); (err == nil) != (skew == 0) {
			t.Errorf("%s: at first: %v", skew, err)
		}
		if err := check(lease("one", there)); (err == nil) != (skew == 0) { // a watch that was opened again
			t.Errorf("%s: not renewed: %v", skew, err)
		}
		if err := check(lease("one", there.Add(2*time.Second))); err != nil {
			t.Errorf("%s: renewed: %v", skew, err)
		}
	}
}
