package requirements

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// differs lists the differences from the existing cluster that `cluster up` cannot change. With
// --recreate there are none, because the cluster is removed first.
func (c checks) differs(ctx context.Context) ([]error, error) {
	notes, err := c.Cluster.Session.Notes().All(ctx)
	if err != nil || c.recreate || notes[session.RestoringNote] != "" {
		return nil, err
	}
	then, err := c.Cluster.Session.UpRecord(ctx)
	if err != nil {
		return nil, err
	}
	if then != nil && c.state.Empty() {
		return []error{c.Cluster.Session.HostsGone()}, nil
	}
	if err := preflight.Mixed(c.Topology, c.state); err != nil {
		return []error{err}, nil
	}
	errs := changed(c.Topology, c.state)
	if then != nil {
		errs = append(errs, preflight.Grown(c.Topology, c.state, then.Nodes)...)
	}
	return errs, nil
}

// changed lists the settings that differ and that only new hosts can have.
func changed(t topology.Topology, state topology.State) (errs []error) {
	for _, n := range t.Nodes() {
		is, ok := state.Node(n.Name)
		if !ok {
			continue
		}
		if all := unlike(n.Spec, t.Variant(n), is); len(all) > 0 {
			errs = append(errs, differs(t.Cluster(), n, all))
		}
	}
	return errs
}

func differs(cluster string, n topology.ClusterNode, all []string) *step.Problem {
	node := strings.TrimPrefix(n.Name, cluster+"-")
	remedy := "omit that, or run `kube-bootstrap node remove " + node + " --cluster " + cluster +
		"` first, or add --recreate to create the whole cluster again"
	if n.Role == topology.Bare {
		remedy = "omit that, or run `kube-bootstrap cluster clean --name " + cluster +
			"` first, which removes all its hosts"
	}
	return &step.Problem{
		Name: "cluster-differs", Text: "node " + node + " of cluster " + cluster + " exists with " + strings.Join(all,
			", "), Remedy: remedy,
	}
}

// unlike compares the settings that are part of a host's container. The host
// verb (master or worker) compares all other settings itself.
func unlike(want topology.Spec, variant string, is topology.NodeState) (all []string) {
	for _, one := range []struct{ name, was, now string }{
		{"role", string(is.Role), string(want.Role)},
		{"hostImage", testhost.VariantOf(is.Image), variant},
		{"cpus", cpus(is.Spec.NanoCPUs), cpus(want.NanoCPUs)},
		{"memory", size(is.Spec.Memory), size(want.Memory)},
		{"disk", size(is.Spec.Disk), size(want.Disk)},
		{"ports", words(is.Spec.Ports), words(want.Ports)},
		{"mounts", words(is.Spec.Mounts), words(want.Mounts)},
	} {
		if one.was != "" && one.was != one.now {
			all = append(all, one.name+" "+one.was+" and not "+one.now)
		}
	}
	return all
}

func words[T fmt.Stringer](all []T) string { return cmp.Or(config.Joined(all), "none") }

func cpus(nano int64) string { return limit(resource.NewScaledQuantity(nano, resource.Nano)) }

func size(bytes int64) string { return limit(resource.NewQuantity(bytes, resource.BinarySI)) }

func limit(q *resource.Quantity) string {
	if q.IsZero() {
		return "unlimited"
	}
	return q.String()
}
