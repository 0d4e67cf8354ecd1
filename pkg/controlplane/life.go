package controlplane

import (
	"fmt"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// MinLeafLife is the shortest lifetime of certificates with which a cluster
// works: the agent looks at them every few minutes.
const MinLeafLife = 15 * time.Minute

// lifeFile is there if certificates have another lifetime than the usual one.
const lifeFile = host.StateDir + "/certificate-lifetime.json"

var life = host.Record[time.Duration]{Path: lifeFile, Valid: ValidLeafLife}

// ValidLeafLife refuses a lifetime that is too short or too long.
func ValidLeafLife(d time.Duration) error {
	if d < MinLeafLife || d > pki.LeafLife {
		return fmt.Errorf("a lifetime of %s: must be from %s to %s", d, MinLeafLife, pki.LeafLife)
	}
	return nil
}

// SetLeafLife has the certificates of this host issued for d from now on.
func SetLeafLife(files host.Files, d time.Duration) error { return life.Write(files, d) }

// ReadLeafLife returns 0 for the usual lifetime.
func ReadLeafLife(files host.Files) time.Duration {
	d, _ := life.Read(files)
	return d
}
