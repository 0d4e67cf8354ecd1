package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// differs lists the differences between the existing cluster and the requested
// one that `cluster up` cannot change. With --recreate there are none, because
// the cluster is removed first.
func (f *fleet) differs(ctx context.Context) ([]error, error) {
	notes, err := f.docker.Notes(ctx, f.Name)
	if err != nil || f.Recreate || notes[restoringKey] != "" {
		return nil, err
	}
	then, err := f.noted(ctx)
	if err != nil {
		return nil, err
	}
	found, err := f.found(ctx)
	if err != nil {
		return nil, err
	}
	if then != nil && len(found) == 0 {
		return []error{f.hostsGone()}, nil
	}
	errs := f.changed(found)
	if then != nil {
		errs = append(errs, f.grown(then, found)...)
	}
	return errs, nil
}

func (f *fleet) hostsGone() error {
	return &step.Problem{Name: "cluster-hosts", Text: "the hosts of cluster " + f.Name + " are gone; its settings and snapshots are not",
		Remedy: "restore one of `kube-bootstrap cluster snapshot list --name " + f.Name + "`, or add --recreate to create new hosts"}
}

// grown rejects adding control planes to a cluster that has been up. A new
// cluster may add several at a time, but a cluster in use would lose its etcd
// quorum if one of several joining members failed.
func (f *fleet) grown(then *Record, found []docker.FoundMachine) []error {
	var names []string
	for _, m := range f.missing(found) {
		known := slices.ContainsFunc(then.Nodes, func(s Spec) bool { return f.hostName(s) == m.name })
		if m.role == Master && !known { // a recorded control plane that was lost is created again
			names = append(names, m.name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return []error{&step.Problem{
		Name: "cluster-differs", Text: fmt.Sprintf("cluster %s has no control plane %s", f.Name, strings.Join(names, ", ")),
		Remedy: "add one after the other with `kube-bootstrap node add --role control-plane --cluster " + f.Name + "`",
	}}
}

// changed lists settings of existing hosts that can only change when the hosts
// are created again.
func (f *fleet) changed(found []docker.FoundMachine) (errs []error) {
	for _, m := range f.members() {
		at := slices.IndexFunc(found, func(is docker.FoundMachine) bool { return is.Name == m.name })
		if at < 0 || f.Recreate {
			continue
		}
		if all := f.unlike(m, found[at]); len(all) > 0 {
			node := strings.TrimPrefix(m.name, f.Name+"-")
			errs = append(errs, &step.Problem{Name: "cluster-differs", Text: "node " + node + " of cluster " + f.Name + " exists with " + strings.Join(all, ", "),
				Remedy: "omit that, or run `kube-bootstrap node remove " + node + " --cluster " + f.Name + "` first, or add --recreate to create the whole cluster again"})
		}
	}
	return errs
}

// unlike compares the settings that are part of a host's container. The host
// verb (master or worker) compares all other settings itself.
func (f *fleet) unlike(m member, is docker.FoundMachine) (all []string) {
	was := specOf(is)
	for _, one := range []struct{ name, was, now string }{
		{"role", string(was.Role), string(m.role)},
		{"hostImage", variantOf(is.Image), f.variant(m)},
		{"cpus", cpus(was.NanoCPUs), cpus(m.spec.NanoCPUs)},
		{"memory", size(was.Memory), size(m.spec.Memory)},
		{"disk", size(was.Disk), size(m.spec.Disk)},
	} {
		if one.was != "" && one.was != one.now {
			all = append(all, one.name+" "+one.was+" and not "+one.now)
		}
	}
	return all
}

func cpus(nano int64) string {
	if nano == 0 {
		return "unlimited"
	}
	return resource.NewScaledQuantity(nano, resource.Nano).String()
}

func size(bytes int64) string {
	if bytes == 0 {
		return "unlimited"
	}
	return resource.NewQuantity(bytes, resource.BinarySI).String()
}

// variantOf returns the variant that a host was made of; "" if its image name
// does not contain it, as after a restore.
func variantOf(image string) string {
	tag, ours := strings.CutPrefix(image, hostImages+":")
	if at := strings.LastIndex(tag, "-"); ours && at > 0 {
		return tag[:at]
	}
	return ""
}
