package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Reup updates a running cluster to Options.Components, and returns the nodes
// that were not up to date. On each of them the host command runs again and
// restarts what differs. Workers come first, because kube-proxy can be replaced
// once all nodes have its image. Then the control planes follow one by one, so
// that the API server stays available if there are several. Reup does not touch
// other nodes.
func Reup(ctx context.Context, options Options, emit func(session.HostEvent)) (stale []string, err error) {
	c, err := openChange(ctx, options, emit)
	if err != nil {
		return nil, err
	}
	defer c.close()
	share := step.Plan{{c.options.setup(c.cluster, c.nodes).Share(), c.options.noteComponents(c.cluster.Session)}}
	if err := c.run(ctx, share); err != nil {
		return nil, err
	}
	c.source.shared = true
	nodes := c.stale(ctx)
	for _, n := range nodes {
		stale = append(stale, n.Name)
	}
	if err := c.run(ctx, append(c.restartPlan(nodes), []step.Step{c.await(nodes)})); err != nil {
		return stale, err
	}
	return stale, c.dropOldComponents(ctx)
}

// dropOldComponents removes the components that neither the nodes nor a snapshot need.
func (c change) dropOldComponents(ctx context.Context) error {
	controlPlane, err := c.cluster.Session.RunningControlPlane(ctx, "")
	if err != nil {
		return err
	}
	inSnapshots, err := snapshot.Components(ctx, c.cluster.Session)
	if err != nil {
		return err
	}
	return dropOldComponents(ctx, c.cluster.Session, append(inSnapshots, c.source.components), controlPlane.Name)
}

// stale returns the running nodes that are not up to date, control planes first.
func (c change) stale(ctx context.Context) (stale []topology.ClusterNode) {
	running := slices.DeleteFunc(c.state.Running(), func(n topology.NodeState) bool { return n.Role == topology.Bare })
	outdated := map[string]bool{}
	for _, status := range remote.Statuses(ctx, c.cluster.Session, running) {
		outdated[status.Name] = !upToDate(c.options.Components.Versions, status)
	}
	return slices.DeleteFunc(c.nodes.Nodes(), func(n topology.ClusterNode) bool { return !outdated[n.Name] })
}

// upToDate reports whether a node runs these components and lacks nothing.
func upToDate(components map[string]string, status remote.HostStatus) bool {
	want := image.Versions{Programs: components}
	if status.Role == topology.Worker {
		want = want.OnWorker()
	}
	report, err := status.Read()
	return err == nil && report.UpToDate && maps.Equal(report.Programs, want.Programs)
}

func (c change) restartPlan(nodes []topology.ClusterNode) step.Plan {
	var binaries, workers []step.Step
	var controlPlanes step.Plan
	for _, n := range nodes {
		binaries = append(binaries, remote.PutBinary(c.cluster.Session, n.Name, c.options.Binary))
		if n.Role == topology.Worker {
			workers = append(workers, roleStep(n, c.restart))
		} else {
			controlPlanes = append(controlPlanes, []step.Step{roleStep(n, c.restart)})
		}
	}
	return append(step.Plan{binaries, workers}, controlPlanes...)
}

// restart runs a host command with the settings that are stored on the host.
func (c change) restart(ctx context.Context, n topology.ClusterNode) error {
	return remote.Run(ctx, c.cluster.Session, n.Name, append([]string{string(n.Role)}, c.source.args()...), nil)
}

// await returns the step that waits until these nodes report the wanted components.
func (c change) await(nodes []topology.ClusterNode) step.Step {
	version := image.Versions{Programs: c.options.Components.Versions, Kubernetes: c.options.Kubernetes}
	return step.Wait("wait-for-programs", "wait for the programs", func(ctx context.Context) error {
		client, err := apiserver.Connect(ctx, c.cluster.Session, "").Client()
		if err != nil {
			return err
		}
		found, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		pods, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		var errs []error
		for _, n := range nodes {
			errs = append(errs, runs(n, version, found.Items, pods.Items))
		}
		return errors.Join(append(errs, serves(client, version))...)
	}, nil).If(len(nodes) > 0)
}

func serves(client kubernetes.Interface, want image.Versions) error {
	is, err := client.Discovery().ServerVersion()
	if version := want.ProgramVersion("kube-apiserver"); err == nil && is.GitVersion != version {
		err = fmt.Errorf("the API server still has version %s instead of %s", is.GitVersion, version)
	}
	return err
}

// runs returns an error unless a node runs the wanted components. It does not
// check the pod of the API server, whose status is ten seconds late because the
// kubelet could not report it during the restart; the host command has checked
// the API server itself.
func runs(m topology.ClusterNode, want image.Versions, nodes []corev1.Node, pods []corev1.Pod) error {
	at := slices.IndexFunc(nodes, func(n corev1.Node) bool { return n.Name == m.Name })
	if at < 0 {
		return fmt.Errorf("the API server knows no node %s", m.Name)
	}
	node := apiserver.NodeOf(nodes[at])
	if version := want.ProgramVersion("kubelet"); node.Version != version {
		return fmt.Errorf("the kubelet of %s still has version %s instead of %s", m.Name, node.Version, version)
	}
	if !node.Ready {
		return fmt.Errorf("node %s is not Ready", m.Name)
	}
	programs := []string{"kube-proxy"}
	if m.Role == topology.ControlPlane {
		programs = append(programs, "kube-controller-manager", "kube-scheduler")
	}
	for _, program := range programs {
		if err := runsPod(m, program, image.ProgramRef(want, program), pods); err != nil {
			return err
		}
	}
	return nil
}

// runsPod returns an error unless a pod of a node runs a component from an image.
func runsPod(m topology.ClusterNode, program, ref string, pods []corev1.Pod) error {
	err := fmt.Errorf("%s runs no %s", m.Name, program)
	for _, p := range pods {
		c := p.Spec.Containers[0]
		if p.Spec.NodeName != m.Name || c.Name != program {
			continue
		}
		if c.Image != ref {
			return fmt.Errorf("pod %s still runs image %s", p.Name, c.Image)
		}
		err = apiserver.PodReady(p)
	}
	return err
}
