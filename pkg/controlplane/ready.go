package controlplane

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// errNoConfig says that the certificates are not there yet.
var errNoConfig = errors.New("there is no " + AdminConf + " yet")

// API is the API server of this host.
type API struct {
	HostSettings
	Version string // what the API server says that it is
}

// Ready waits until the API server says that it is ready.
func (a API) Ready() step.Step {
	return step.Wait("wait-for-apiserver", "wait for the API server", a.serves,
		func() string { return explain(a.Files) })
}

// Healthy returns the steps that wait for the controller manager and the
// scheduler. watch ends such a wait when the component crashes.
func (s StaticPods) Healthy(watch func(component string) func(context.Context) error) []step.Step {
	var all []step.Step
	for _, p := range []component{s.manager(), s.scheduler()} {
		healthy := func(ctx context.Context) error { return step.Serves(p.healthy(ctx)) }
		all = append(all, step.Wait(step.IDOf("wait-for", p.name), "wait for "+p.name, healthy,
			nil).Watched(watch(p.name)))
	}
	return all
}

// serves is Answers, and also checks the version of the API server: a server of another
// version is about to be replaced.
func (a API) serves(ctx context.Context) error {
	if err := a.Answers(ctx); err != nil {
		return err
	}
	client, err := adminClient(a.Files)
	if err != nil {
		return err
	}
	var is version.Info
	data, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	if err == nil && is.GitVersion != a.Version {
		return fmt.Errorf("%s still has version %s instead of %s", a.Server(), is.GitVersion, a.Version)
	}
	return kube.NoAnswer(err)
}

// Answers returns nil if the API server says that it is ready.
func (a API) Answers(ctx context.Context) error {
	client, err := adminClient(a.Files)
	if err != nil {
		return err
	}
	answer, err := client.Discovery().RESTClient().Get().AbsPath("/readyz").DoRaw(ctx)
	if err == nil || apierrors.IsUnauthorized(err) || apierrors.IsForbidden(err) || len(answer) == 0 {
		return step.Serves(err)
	}
	text := strings.TrimSpace(string(answer))
	return fmt.Errorf("%s: %s", a.Server(), text[strings.LastIndex(text, "\n")+1:])
}

func adminClient(files host.Files) (kubernetes.Interface, error) {
	data, err := files.Read(AdminConf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, errNoConfig
	}
	if err != nil {
		return nil, err
	}
	client, err := kube.KubeconfigOf(data).Client()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", AdminConf, err)
	}
	return client, nil
}

// explain returns the end of what the API server logged last.
func explain(files host.Files) string {
	pattern := podLogDir + "/kube-system_kube-apiserver-*/kube-apiserver/*.log"
	logs := files.Match(pattern)
	if len(logs) == 0 {
		return "the kubelet has started no API server: there is no " + pattern
	}
	last := newest(files, logs)
	data, err := files.Read(last)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	return last + ":\n" + strings.Join(lines[max(0, len(lines)-15):], "\n")
}

// newest returns the file that was written last. The names do not show this: 10.log sorts before
// 9.log, and an earlier pod has another directory.
func newest(files host.Files, paths []string) string {
	return slices.MaxFunc(paths, func(a, b string) int { return written(files, a).Compare(written(files, b)) })
}

// written returns when a file was written last; the zero time if it is gone.
func written(files host.Files, path string) time.Time {
	info, err := os.Stat(files.Path(path))
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// Electing reports whether this host's controller manager elects a leader when it runs.
func Electing(files host.Files) bool {
	return podContains(files, "kube-controller-manager", "--leader-elect=true")
}

// UsesEtcd reports whether this host's API server uses that endpoint of etcd when it runs.
func UsesEtcd(files host.Files, endpoint string) bool {
	return podContains(files, "kube-apiserver", endpoint)
}

// podContains reports whether the static pod of a component exists and contains text.
func podContains(files host.Files, component, text string) bool {
	data, err := files.Read(podPath(component))
	return err == nil && bytes.Contains(data, []byte(text))
}

// AwaitElection waits until the other control planes use leader election. A single control
// plane turns it on when a second one is announced. Without it, both controller managers would
// do the same work.
func AwaitElection(files host.Files) step.Step {
	name := "wait until the other control planes share their work"
	alone := func(context.Context) (bool, error) { return !Electing(files), nil }
	return step.When("await-election", name, name, alone, func(ctx context.Context) error {
		for _, leader := range []string{"kube-controller-manager", "kube-scheduler"} {
			open := func(ctx context.Context) (watch.Interface, error) {
				client, err := adminClient(files)
				if err != nil {
					return nil, err
				}
				byName := metav1.SingleObject(metav1.ObjectMeta{Name: leader})
				return client.CoordinationV1().Leases(metav1.NamespaceSystem).Watch(ctx, byName)
			}
			if err := kube.Await(ctx, open, held(), nil); err != nil {
				return fmt.Errorf("%s: %w; look at `kube-bootstrap status` on the first control plane", leader, err)
			}
		}
		return nil
	}).Waiting()
}

// staleAfter is longer than a leader is silent.
const staleAfter = time.Minute

// held returns the check whether a leader renews its lease. A lease that is recent by the
// clock of this host needs no wait. Clocks of a cluster may differ by minutes, so any
// lease that is renewed while this host looks is held too.
func held() func(runtime.Object) error {
	var first *metav1.MicroTime
	return func(o runtime.Object) error {
		lease := o.(*coordinationv1.Lease)
		renewed := lease.Spec.RenewTime
		if lease.Spec.HolderIdentity == nil || *lease.Spec.HolderIdentity == "" || renewed == nil {
			return errors.New("no leader yet")
		}
		if first == nil {
			first = renewed
		}
		since := time.Since(renewed.Time)
		if since.Abs() <= staleAfter || !renewed.Equal(first) {
			return nil
		}
		return fmt.Errorf("its leader last renewed the lease at %s, and not since this host looks",
			renewed.UTC().Format(time.RFC3339))
	}
}
