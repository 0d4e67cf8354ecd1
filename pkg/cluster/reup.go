package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Reup has a cluster that is up run Options.Programs, and returns the nodes that
// had something else to run, or something missing. On each of those the host
// verb runs again, which relaunches what differs; workers first, as kube-proxy
// can be exchanged once all have its image, then one control plane after the
// other, so that the API server is never away where there are several. Other
// nodes are not touched.
func Reup(ctx context.Context, options Options, emit func(Event)) (stale []string, err error) {
	err = onNodes(ctx, options, emit, func(f *fleet, found []docker.FoundMachine) error {
		if err := f.run(ctx, step.Plan{{f.shared(), f.notePrograms()}}); err != nil {
			return err
		}
		f.shipped = true
		members := f.stale(ctx, found)
		for _, m := range members {
			stale = append(stale, m.name)
		}
		if err := f.run(ctx, append(f.relaunchRows(members), f.relaunched(members))); err != nil {
			return err
		}
		master, err := f.firstMaster(ctx, "")
		if err != nil {
			return err
		}
		return f.dropOldPrograms(ctx, f.byName(master.Name))
	})
	return stale, err
}

// stale are the nodes that run and are not as they shall be.
func (f *fleet) stale(ctx context.Context, found []docker.FoundMachine) (stale []member) {
	is := make([]bool, len(f.members()))
	var wg sync.WaitGroup
	for i, m := range f.members() {
		at := slices.IndexFunc(found, func(one docker.FoundMachine) bool { return one.Name == m.name && one.State == "running" })
		if at >= 0 && m.role != Bare {
			wg.Go(func() { is[i] = !f.upToDate(m, f.hostStatus(ctx, found[at])) })
		}
	}
	wg.Wait()
	for i, m := range f.members() {
		if is[i] {
			stale = append(stale, m)
		}
	}
	return stale
}

// upToDate reports whether a node says that it runs what it shall, and that
// nothing is missing.
func (f *fleet) upToDate(m member, status HostStatus) bool {
	var report struct {
		InPlace  bool
		Programs map[string]string
	}
	want := image.Versions{Programs: f.Programs.Versions}
	if m.role == Worker {
		want = want.OnWorker()
	}
	err := json.Unmarshal(status.Report, &report)
	return err == nil && report.InPlace && maps.Equal(report.Programs, want.Programs)
}

func (f *fleet) relaunchRows(members []member) step.Plan {
	var programs, workers []step.Step
	var masters step.Plan
	for _, m := range members {
		programs = append(programs, f.program(m))
		if m.role == Worker {
			workers = append(workers, f.verb(m, f.relaunch))
		} else {
			masters = append(masters, []step.Step{f.verb(m, f.relaunch)})
		}
	}
	return append(step.Plan{programs, workers}, masters...)
}

// relaunch runs a host verb with the settings that the host remembers.
func (f *fleet) relaunch(ctx context.Context, m member) error {
	return f.relay(ctx, m, append([]string{string(m.role), "--progress", "json"}, f.bundleArgs()...), nil)
}

// relaunched waits until every node of these shows the programs that it shall.
func (f *fleet) relaunched(members []member) []step.Step {
	if len(members) == 0 {
		return nil
	}
	version := image.Versions{Programs: f.Programs.Versions, Kubernetes: f.Kubernetes}
	return []step.Step{step.Wait("wait for the programs", func(ctx context.Context) error {
		client, err := f.api(ctx, member{}).Client()
		if err != nil {
			return err
		}
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var errs []error
		for _, m := range members {
			errs = append(errs, runs(m, version, nodes.Items, pods.Items))
		}
		return errors.Join(append(errs, serves(client, version))...)
	}, nil)}
}

func serves(client kubernetes.Interface, want image.Versions) error {
	is, err := client.Discovery().ServerVersion()
	if version := want.ProgramVersion("kube-apiserver"); err == nil && is.GitVersion != version {
		err = fmt.Errorf("the API server is %s yet, and not %s", is.GitVersion, version)
	}
	return err
}

// runs says what keeps a node from running the programs it shall. The host verb
// has asked the API server itself, and knows more of it than its pod's status,
// which comes ten seconds later: the kubelet could not report while it was away.
func runs(m member, want image.Versions, nodes []corev1.Node, pods []corev1.Pod) error {
	at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == m.name })
	if at < 0 {
		return fmt.Errorf("the API server knows no node %s", m.name)
	}
	node := nodeOf(nodes[at])
	if version := want.ProgramVersion("kubelet"); node.Version != version {
		return fmt.Errorf("the kubelet of %s is %s yet, and not %s", m.name, node.Version, version)
	}
	if !node.Ready {
		return fmt.Errorf("node %s is not Ready", m.name)
	}
	programs := []string{"kube-proxy"}
	if m.role == Master {
		programs = append(programs, "kube-controller-manager", "kube-scheduler")
	}
	for _, program := range programs {
		if err := runsPod(m, program, image.ProgramRef(want, program), pods); err != nil {
			return err
		}
	}
	return nil
}

// runsPod says what keeps a node from running a program from an image in a pod.
func runsPod(m member, program, ref string, pods []corev1.Pod) error {
	err := fmt.Errorf("%s runs no %s", m.name, program)
	for _, p := range pods {
		c := p.Spec.Containers[0]
		if p.Spec.NodeName != m.name || c.Name != program {
			continue
		}
		if c.Image != ref {
			return fmt.Errorf("pod %s runs from %s yet", p.Name, c.Image)
		}
		err = podReady(p)
	}
	return err
}
