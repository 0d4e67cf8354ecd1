package session

import (
	"context"
	"os"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// NoNodes returns the problem that the cluster has no nodes, which a killed run may have
// been creating, restoring or removing.
func (s *Session) NoNodes(ctx context.Context) error {
	if err := s.MustExist(ctx); err != nil {
		return err
	}
	restoring, err := s.Restoring(ctx)
	if err != nil {
		return err
	}
	r, err := s.Record(ctx)
	switch {
	case err != nil:
		return err
	case restoring != "":
		return s.RestoreUnfinished(restoring)
	case r == nil:
		return s.unfinished("a run that creates cluster " + s.Name + " has not finished")
	case r.Phase == "":
		return s.HostsGone()
	}
	return s.unfinished("a run that removed the hosts of cluster " + s.Name + " to create it again was interrupted")
}

// RestoreUnfinished returns the problem that a run that restores a snapshot was killed, or is
// still in progress unless the caller has ClusterLock.
func (s *Session) RestoreUnfinished(snapshot string) error {
	return s.unfinished("a run that restores snapshot " + snapshot + " of cluster " + s.Name + " has not finished")
}

func (s *Session) unfinished(text string) error {
	return &step.Problem{Name: "cluster-unfinished", Text: text,
		Remedy: "run `kube-bootstrap cluster up --name " + s.Name +
			"` to finish, or `kube-bootstrap cluster clean --name " + s.Name + "`"}
}

// HostsGone returns the problem that only the settings and snapshots of the cluster exist.
func (s *Session) HostsGone() error {
	return &step.Problem{Name: "cluster-hosts",
		Text: "the hosts of cluster " + s.Name + " are gone; its settings and snapshots are not",
		Remedy: "restore one of `kube-bootstrap cluster snapshot list --name " + s.Name +
			"`, or create new hosts with `kube-bootstrap cluster up --recreate --name " + s.Name + "`"}
}

// RunningControlPlane observes the nodes and returns State.RunningControlPlane, or a problem.
func (s *Session) RunningControlPlane(ctx context.Context, except string) (topology.NodeState, error) {
	state, err := s.inspect(ctx, Nodes)
	if err != nil {
		return topology.NodeState{}, err
	}
	n, ok := state.RunningControlPlane(except)
	if !ok {
		err = s.Off("no control plane of cluster " + s.Name + " runs")
	}
	return n, err
}

// Off returns the problem that nodes do not run.
func (s *Session) Off(text string) error {
	return &step.Problem{
		Name: "cluster-off", Text: text, Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "`",
	}
}

// MustExist returns a problem if neither the provider nor this machine has any part of the cluster.
func (s *Session) MustExist(ctx context.Context) error {
	exists, err := s.Exists(ctx)
	if err != nil {
		return s.Provider.NoAnswer(err)
	}
	if exists {
		return nil
	}
	all, err := s.Clusters(ctx)
	if err != nil {
		return err
	}
	return s.unknown(all)
}

// unknown returns the problem that no cluster has this name, and lists the others.
func (s *Session) unknown(others []string) error {
	remedy := "this engine has none; create one with `kube-bootstrap cluster up --name " + s.Name + "`"
	if len(others) > 0 {
		remedy = "this engine has " + strings.Join(others, ", ")
	}
	return &step.Problem{
		Name: "cluster-missing", Text: "cluster " + s.Name + " does not exist", Remedy: remedy, Firm: true,
	}
}

// Exists reports whether any part of the cluster exists, also remains of a killed run.
func (s *Session) Exists(ctx context.Context) (bool, error) {
	if FileExists(s.SharedDir()) || FileExists(s.PrivateDir()) {
		return true, nil
	}
	return s.Provider.Exists(ctx, s.Name)
}

// Clusters returns the names of all clusters of the provider.
func (s *Session) Clusters(ctx context.Context) (names []string, err error) {
	all, err := s.Provider.Clusters(ctx)
	for _, c := range all {
		names = append(names, c.Name)
	}
	return names, err
}

// FileExists reports whether this machine has a file or directory at path.
func FileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
