package session

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Lock names the runs that exclude one another on the same cluster.
type Lock struct {
	kind  string
	waits bool // until the other run ends, instead of failing
}

// The locks of a cluster.
var (
	none          = Lock{}
	ClusterLock   = Lock{kind: "cluster"}
	SuiteLock     = Lock{kind: "e2e"}
	SnapshotsLock = Lock{kind: "snapshot", waits: true}
)

// Hold acquires a lock of the cluster. The caller releases it.
func (s *Session) Hold(ctx context.Context, l Lock) (release func(), err error) {
	name := l.kind + "-" + s.Name
	if l.waits {
		return s.HoldCache(ctx, name)
	}
	path, err := s.lockFile(name)
	if err != nil {
		return nil, err
	}
	if release, err = host.Lock(ctx, path); err != nil {
		return nil, fmt.Errorf("cluster %s: %w", s.Name, err)
	}
	return release, nil
}

// HoldCache waits for the lock of one file in the cache, so that only one run
// at a time creates it.
func (s *Session) HoldCache(ctx context.Context, name string) (release func(), err error) {
	path, err := s.lockFile(name)
	if err != nil {
		return nil, err
	}
	return host.WaitLock(ctx, path, name)
}

func (s *Session) lockFile(name string) (string, error) {
	return filepath.Join(s.CacheDir, "."+name+".lock"), os.MkdirAll(s.CacheDir, 0o755)
}
