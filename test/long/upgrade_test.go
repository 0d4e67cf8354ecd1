//go:build e2e

package long

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestUpgrade takes a cluster of two hosts from the last minor version but one to the last one: apply,
// rollback, apply again, finish. No acknowledged write is lost.
func TestUpgrade(t *testing.T) {
	minors := catalog.Minors()
	old, now := minors[len(minors)-2], minors[len(minors)-1]
	path := filepath.Join(t.TempDir(), "old")
	build := host.Command{Args: []string{
		hosts.Built.Binary, "offline", "build", "--quick", "--progress", "none", "--kubernetes-version", old.Patch,
		"--to", path,
	}}
	_, err := build.Run(context.WithoutCancel(t.Context()))
	must.NoError(t, err)
	const oldBundle = "/root/old.tar.zst"
	made := hosts.New(t, "docker-28.5", "10.193.18.0/24", "e2e-u1", "e2e-u2")
	master, worker := made[0], made[1]
	for _, m := range made {
		m.Put(t, path, oldBundle)
	}
	clusters.UpFrom(t, oldBundle, master, worker, "--kubernetes-version "+old.Patch)
	writes := count(t, master)
	u := upgraded{master, worker, old, now}

	t.Run("master refuses the next minor version", func(t *testing.T) {
		_, err := master.Try(t.Context(), "kube-bootstrap master --dry-run --kubernetes-version "+now.Patch)
		if err == nil || !strings.Contains(err.Error(), "upgrade plan") {
			t.Errorf("got %v", err)
		}
	})
	master.Sh(t, "kube-bootstrap upgrade plan")
	u.oneAtATime(t)
	u.apply(t)
	master.Sh(t, "kube-bootstrap backup verify --identity /var/lib/kube-bootstrap/upgrades/backup.key "+
		"/var/lib/kube-bootstrap/upgrades/*.backup")
	u.runs(t, now.Patch, old)
	t.Run("what only the new version has is refused", func(t *testing.T) {
		before := master.Kubectl(t, "api-resources -o name | sort")
		u.each(t, "rollback")
		u.runs(t, old.Patch, old)
		if after := master.Kubectl(t, "api-resources -o name | sort"); after != before {
			t.Errorf("the emulating API server has\n%s\nthe old one\n%s", before, after)
		}
	})
	u.apply(t)
	u.each(t, "finish")
	u.runs(t, now.Patch, now)
	since := time.Now().UTC()
	wait.Until(t, 3*time.Minute, "nodes and pods", func() error { return clusters.AllReady(t, master, since, 2) })
	writes(t)
}

// upgraded is a cluster of two hosts between two minor versions.
type upgraded struct {
	master, worker hosts.Machine
	old, now       catalog.Minor
}

func (u upgraded) apply(t *testing.T) {
	t.Helper()
	for _, m := range []hosts.Machine{u.master, u.worker} {
		m.Sh(t, "kube-bootstrap upgrade apply --bundle "+hosts.Bundle+" 2>&1")
	}
}

// oneAtATime begins the upgrade on the control plane. The status of the worker must name this command meanwhile, and
// the same command on the worker must be refused.
func (u upgraded) oneAtATime(t *testing.T) {
	t.Helper()
	const apply = "kube-bootstrap upgrade apply --bundle " + hosts.Bundle + " 2>&1"
	first := make(chan error, 1)
	go func() {
		_, err := u.master.Try(t.Context(), apply)
		first <- err
	}()
	wait.Until(t, time.Minute, "the command in the status of the worker", func() error {
		out, err := u.worker.Try(t.Context(), "kube-bootstrap status")
		if !strings.Contains(out, "upgrades the cluster since") {
			return errors.Join(err, errors.New(out))
		}
		return nil
	})
	if _, err := u.worker.Try(t.Context(), apply); err == nil || !strings.Contains(err.Error(), "upgrade-locked") {
		t.Errorf("two commands upgrade the cluster: %v", err)
	}
	must.NoError(t, <-first)
}

func (u upgraded) each(t *testing.T, command string) {
	t.Helper()
	for _, m := range []hosts.Machine{u.master, u.worker} {
		m.Sh(t, "kube-bootstrap upgrade "+command+" 2>&1")
		if out, err := m.Try(t.Context(), "kube-bootstrap status"); err != nil {
			t.Errorf("%s after %s: %v\n%s", m.Name, command, err, out)
		}
	}
}

// runs expects the release of the API server, and the etcd and the kubelets of a minor version.
func (u upgraded) runs(t *testing.T, server string, rest catalog.Minor) {
	t.Helper()
	if out := u.master.Kubectl(t, "version -o json"); !strings.Contains(out, `"gitVersion": "`+server+`"`) {
		t.Errorf("the API server is not %s:\n%s", server, out)
	}
	kubelets(t, u.master, rest.Patch, rest.Patch)
	running := u.master.Sh(t, "docker -H unix:///run/docker-bootstrap.sock ps --format {{.Image}}")
	if !strings.Contains(running, "/etcd:"+rest.Etcd) {
		t.Errorf("etcd is not %s: %s", rest.Etcd, running)
	}
}

// count writes an object ten times a second. The returned function ends it, and expects the last
// acknowledged number.
func count(t *testing.T, master hosts.Machine) func(*testing.T) {
	t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(master.Sh(t, "cat /etc/kubernetes/admin.conf")))
	must.NoError(t, err)
	config.Timeout = 5 * time.Second
	client, err := kubernetes.NewForConfig(config)
	must.NoError(t, err)
	maps := client.CoreV1().ConfigMaps("default")
	counter := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "counter"}}
	_, err = maps.Create(t.Context(), counter, metav1.CreateOptions{})
	must.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	acknowledged, refused, longest, last := 0, 0, time.Duration(0), time.Now()
	var wg sync.WaitGroup
	wg.Go(func() {
		for n := 1; ctx.Err() == nil; n++ {
			counter.Data = map[string]string{"n": strconv.Itoa(n)}
			if _, err := maps.Update(ctx, counter, metav1.UpdateOptions{}); err == nil {
				longest, last, acknowledged = max(longest, time.Since(last)), time.Now(), n
			} else {
				refused++
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	return func(t *testing.T) {
		t.Helper()
		stop()
		wg.Wait()
		found, err := maps.Get(t.Context(), "counter", metav1.GetOptions{})
		must.NoError(t, err)
		if stored, _ := strconv.Atoi(found.Data["n"]); stored < acknowledged {
			t.Errorf("%d was acknowledged, and %d is stored", acknowledged, stored)
		}
		t.Logf("%d writes acknowledged, %d not; the API was away for at most %s", acknowledged, refused, longest)
	}
}
