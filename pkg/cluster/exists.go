package cluster

import (
	"context"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// mustExist returns a problem if neither the engine nor this machine has any
// part of the cluster.
func (f *fleet) mustExist(ctx context.Context) error {
	there, err := f.exists(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	if there {
		return nil
	}
	all, err := f.clusters(ctx)
	if err != nil {
		return err
	}
	return f.unknown(all)
}

// noHosts returns the problem that the cluster has no hosts.
func (f *fleet) noHosts(ctx context.Context) error {
	if err := f.mustExist(ctx); err != nil {
		return err
	}
	if err := f.interrupted(ctx); err != nil {
		return err
	}
	return f.hostsGone()
}

// unknown returns the problem that no cluster has this name, and lists the
// others.
func (f *fleet) unknown(others []string) error {
	remedy := "this engine has none; create one with `kube-bootstrap cluster up --name " + f.Name + "`"
	if len(others) > 0 {
		remedy = "this engine has " + strings.Join(others, ", ")
	}
	return &step.Problem{Name: "cluster-missing", Text: "cluster " + f.Name + " does not exist", Remedy: remedy, Firm: true}
}

// exists reports whether any part of the cluster exists, including remains of a
// run that was killed while it created or removed the cluster.
func (f *fleet) exists(ctx context.Context) (bool, error) {
	if fileThere(f.sharedDir()) || fileThere(f.privateDir()) {
		return true, nil
	}
	if all, err := f.clusters(ctx); err != nil || slices.Contains(all, f.Name) {
		return err == nil, err
	}
	volumes, err := f.docker.Volumes(ctx, f.Name)
	if err != nil || len(volumes) > 0 {
		return err == nil, err
	}
	images, err := f.docker.Images(ctx, f.Name)
	return len(images) > 0, err
}

// clusters returns the names of all clusters that have hosts or networks on the
// engine.
func (f *fleet) clusters(ctx context.Context) ([]string, error) {
	machines, err := f.docker.Machines(ctx)
	if err != nil {
		return nil, err
	}
	networks, err := f.docker.Networks(ctx)
	var all []string
	for _, m := range machines {
		all = append(all, m.Fleet)
	}
	for _, n := range networks {
		all = append(all, n.Fleet)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" }), err
}

// Exists reports whether any part of a cluster exists.
func Exists(ctx context.Context, options Options) (there bool, err error) {
	err = withFleet(ctx, options, func(f *fleet) error {
		there, err = f.exists(ctx)
		return err
	})
	return there, err
}
