package session

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// NoAnswer returns the problem that the engine does not answer.
func (s *Session) NoAnswer(err error) error {
	text := strings.Join(strings.Fields(err.Error()), " ") // an error of ssh has several lines
	return &step.Problem{
		Name: "engine", Text: fmt.Sprintf("the Docker engine on %s does not answer: %s", s.Engine.Address, text),
		Remedy: engineRemedy(s.Engine.Address, text), Firm: true,
	}
}

// engineRemedy returns a remedy for the kind of the address and for the error.
func engineRemedy(address, text string) string {
	way, _, _ := strings.Cut(address, "://")
	switch {
	case strings.Contains(text, "permission denied") && way == "unix":
		return "run it with sudo, or add your user to the group of that socket (`usermod -aG docker USER`, then log in again)"
	case way == "ssh":
		return "check that `ssh " + strings.TrimPrefix(address, "ssh://") + " docker version` works without a password"
	case way == "tcp" || way == "http" || way == "https":
		return "check that Docker listens there, that no firewall is in between, and DOCKER_TLS_VERIFY and DOCKER_CERT_PATH"
	}
	return "start Docker there (with systemd, `systemctl start docker`), or name another engine with --docker-host or --docker-context"
}

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
		Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "` to finish, or `kube-bootstrap cluster clean --name " + s.Name + "`"}
}

// HostsGone returns the problem that only the settings and snapshots of the cluster exist.
func (s *Session) HostsGone() error {
	return &step.Problem{Name: "cluster-hosts", Text: "the hosts of cluster " + s.Name + " are gone; its settings and snapshots are not",
		Remedy: "restore one of `kube-bootstrap cluster snapshot list --name " + s.Name + "`, or create new hosts with `kube-bootstrap cluster up --recreate --name " + s.Name + "`"}
}

// RunningMaster observes the nodes and returns State.RunningMaster, or a problem.
func (s *Session) RunningMaster(ctx context.Context, except string) (topology.NodeState, error) {
	state, err := s.look(ctx, Nodes)
	if err != nil {
		return topology.NodeState{}, err
	}
	n, ok := state.RunningMaster(except)
	if !ok {
		err = s.Off("no control plane of cluster " + s.Name + " runs")
	}
	return n, err
}

// Off returns the problem that nodes do not run.
func (s *Session) Off(text string) error {
	return &step.Problem{Name: "cluster-off", Text: text, Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "`"}
}

// MustExist returns a problem if neither the engine nor this machine has any part of the cluster.
func (s *Session) MustExist(ctx context.Context) error {
	exists, err := s.Exists(ctx)
	if err != nil {
		return s.NoAnswer(err)
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
	return &step.Problem{Name: "cluster-missing", Text: "cluster " + s.Name + " does not exist", Remedy: remedy, Firm: true}
}

// Exists reports whether any part of the cluster exists, also remains of a killed run.
func (s *Session) Exists(ctx context.Context) (bool, error) {
	if FileExists(s.SharedDir()) || FileExists(s.PrivateDir()) {
		return true, nil
	}
	if all, err := s.Clusters(ctx); err != nil || slices.Contains(all, s.Name) {
		return err == nil, err
	}
	volumes, err := s.Cluster().Volumes.List(ctx)
	if err != nil || len(volumes) > 0 {
		return err == nil, err
	}
	images, err := s.Cluster().Images(ctx)
	return len(images) > 0, err
}

// Clusters returns the names of all clusters that have hosts or networks on the engine.
func (s *Session) Clusters(ctx context.Context) ([]string, error) {
	found, err := machines.All(ctx, s.Engine)
	if err != nil {
		return nil, err
	}
	networks, err := s.Engine.Networks(ctx)
	var all []string
	for _, m := range found {
		all = append(all, m.Cluster)
	}
	for _, n := range networks {
		all = append(all, n.Cluster)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(name string) bool { return name == "" }), err
}

// FileExists reports whether this machine has a file or directory at path.
func FileExists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
