package cluster

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// grown names control planes that a cluster which runs does not have. Those of a
// new cluster may join side by side; one that is used would be without a quorum
// as soon as one of several that join etcd fails.
func (f *fleet) grown(ctx context.Context) ([]error, error) {
	then, err := f.noted(ctx)
	if err != nil || then == nil {
		return nil, err
	}
	found, err := f.found(ctx)
	if err != nil || len(found) == 0 || allOff(found) {
		return nil, err
	}
	have, want := controlPlanes(Options{Nodes: []Spec{}}.settle(found)), f.count(Master)
	if was, err := then.masters(); err != nil || want <= max(have, was) {
		return nil, err // those that were lost are made again
	}
	return []error{&step.Problem{
		Name: "cluster-differs", Text: fmt.Sprintf("cluster %s runs with %d control planes and not %d", f.Name, have, want),
		Remedy: "add one after the other with `kube-bootstrap node add --role control-plane`, or run `kube-bootstrap cluster clean --name " + f.Name + "` first",
	}}, nil
}

// masters are how many control planes a cluster was made with.
func (s settings) masters() (int, error) {
	data, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	var o Options
	if err := json.Unmarshal(data, &o); err != nil {
		return 0, fmt.Errorf("what the cluster was made with: %w", err)
	}
	return o.count(Master), nil
}
