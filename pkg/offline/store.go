package offline

import (
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// Target is a store of this host that images are loaded into.
type Target interface {
	// Kind says which images belong into it.
	Kind() image.Store
	// State tells what the store has under a reference. A store that does not
	// answer has nothing.
	State(ctx context.Context, e Entry, v Variant) (State, error)
	// Load takes those images from the streams it opens.
	Load(ctx context.Context, open Stream, entries []Entry) error
	// Users returns the containers that prevent the removal of an image. It
	// returns none if the store does not answer.
	Users(ctx context.Context, ref string) ([]string, error)
	// Remove takes references away; those that are not there are no error.
	Remove(ctx context.Context, refs []string) error
}

// State is what a store has under a reference.
type State int

// Absent, the same content, or another one.
const (
	Absent State = iota
	Same
	Other
)

type dockerStore struct {
	kind   image.Store
	engine *docker.Engine
}

// Docker is the store of a Docker engine, as image.Bootstrap or image.Main.
func Docker(kind image.Store, engine *docker.Engine) Target { return dockerStore{kind, engine} }

func (s dockerStore) Kind() image.Store { return s.kind }

func (s dockerStore) State(ctx context.Context, e Entry, v Variant) (State, error) {
	layers, err := s.engine.ImageLayers(ctx, e.Ref)
	if err != nil || len(layers) == 0 {
		return Absent, err
	}
	var want []string
	for _, d := range v.Layers {
		want = append(want, d.String())
	}
	if len(want) == 0 || slices.Equal(layers, want) {
		return Same, nil
	}
	return Other, nil
}

// loadGrace is how long a Docker may take over an archive that it has whole.
const loadGrace = time.Minute

// Load ends with ctx only as long as the archive has not been sent: Docker goes
// on with one that it has, and would name the images when nobody expects it.
func (s dockerStore) Load(ctx context.Context, open Stream, entries []Entry) error {
	archive := open(entries...)
	defer archive.Close()
	loading, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(loadGrace, cancel) })()
	return s.engine.Load(loading, archive)
}

func (s dockerStore) Users(ctx context.Context, ref string) ([]string, error) {
	if s.kind == image.Bootstrap {
		return nil, nil // only our own containers run there
	}
	return s.engine.ImageUsers(ctx, ref)
}

func (s dockerStore) Remove(ctx context.Context, refs []string) error {
	if err := s.engine.Answers(ctx); err != nil {
		if s.kind == image.Bootstrap {
			return nil // its images go with its data
		}
		return fmt.Errorf("the %s does not answer, so that its images can not be removed; start it and try again: %w", s.kind, err)
	}
	for _, ref := range refs {
		if err := s.engine.RemoveImage(ctx, ref); err != nil {
			return fmt.Errorf("remove image %s: %w", ref, err)
		}
	}
	return nil
}

// listens dials a socket once, because the client would wait for somebody to
// listen on it.
func listens(ctx context.Context, socket string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return err
	}
	return conn.Close()
}
