package session

import (
	"context"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// MustExist returns a problem if neither the engine nor this machine has any
// part of the cluster.
func (s *Session) MustExist(ctx context.Context) error {
	exists, err := s.Exists(ctx)
	if err != nil {
		return s.NoAnswer(err)
	}
	if exists {
		return nil
	}
	all, err := s.clusters(ctx)
	if err != nil {
		return err
	}
	return s.unknown(all)
}

// unknown returns the problem that no cluster has this name, and lists the
// others.
func (s *Session) unknown(others []string) error {
	remedy := "this engine has none; create one with `kube-bootstrap cluster up --name " + s.Name + "`"
	if len(others) > 0 {
		remedy = "this engine has " + strings.Join(others, ", ")
	}
	return &step.Problem{Name: "cluster-missing", Text: "cluster " + s.Name + " does not exist", Remedy: remedy, Firm: true}
}

// Exists reports whether any part of the cluster exists, including remains of a
// run that was killed while it created or removed the cluster.
func (s *Session) Exists(ctx context.Context) (bool, error) {
	if FileExists(s.SharedDir()) || FileExists(s.PrivateDir()) {
		return true, nil
	}
	if all, err := s.clusters(ctx); err != nil || slices.Contains(all, s.Name) {
		return err == nil, err
	}
	volumes, err := s.Cluster().Volumes(ctx)
	if err != nil || len(volumes) > 0 {
		return err == nil, err
	}
	images, err := s.Cluster().Images(ctx)
	return len(images) > 0, err
}

// clusters returns the names of all clusters that have hosts or networks on the
// engine.
func (s *Session) clusters(ctx context.Context) ([]string, error) {
	machines, err := s.Engine.Machines(ctx)
	if err != nil {
		return nil, err
	}
	networks, err := s.Engine.Networks(ctx)
	var all []string
	for _, m := range machines {
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
