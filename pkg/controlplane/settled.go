package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settlePeriod is the time for which the static pods must be Ready before the next host of an upgrade
// stops its own. A component that fails after its start does so within seconds.
const settlePeriod = 10 * time.Second

// Settled is the step that waits until the static pods of this host have been Ready and unchanged for
// settlePeriod. running returns the ID of the container of a component. The API says the same up to two minutes
// later: the kubelet reports a static pod again only some time after the API server was away.
func (s StaticPods) Settled(running func(ctx context.Context, component string) (string, error)) step.Step {
	watched := &settling{pods: []component{s.apiserver(nil), s.manager(), s.scheduler()}, running: running}
	return step.Wait("settled", "wait until the control plane is stable", watched.probe,
		func() string { return explain(s.Files) })
}

// settling remembers since when the containers of the static pods are the same.
type settling struct {
	pods    []component
	running func(ctx context.Context, component string) (string, error)
	was     string
	since   time.Time
}

func (s *settling) probe(ctx context.Context) error {
	is, err := s.containers(ctx)
	if err != nil {
		s.was = ""
		return err
	}
	if is != s.was {
		s.was, s.since = is, time.Now()
	}
	if stable := time.Since(s.since); stable < settlePeriod {
		return fmt.Errorf("the static pods have been unchanged for %s", stable.Round(time.Second))
	}
	return nil
}

// containers returns the IDs of the containers of all static pods, or an error unless all of them are Ready.
func (s *settling) containers(ctx context.Context) (string, error) {
	var ids []string
	for _, p := range s.pods {
		if err := step.Serves(p.healthy(ctx)); err != nil {
			return "", err
		}
		id, err := s.running(ctx, p.name)
		if err != nil {
			return "", err
		}
		ids = append(ids, id)
	}
	return strings.Join(ids, " "), nil
}
