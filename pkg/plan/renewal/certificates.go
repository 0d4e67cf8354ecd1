package renewal

import (
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// Certificates lists the certificates on a host of the role, authorities
// first. It needs no settings, so that it works when they are lost.
func Certificates(files host.Files, role string) []pki.Listed {
	all, now := []pki.Listed{}, time.Now()
	for _, one := range heldBy(role) {
		if !removed(files, one) {
			all = append(all, one.Look(files.Read, now))
		}
	}
	return all
}

// removed reports whether an administrator has removed the certificate.
func removed(files host.Files, one pki.Held) bool { return one.Optional && !files.Exists(one.Path) }

func heldBy(role string) []pki.Held {
	switch role {
	case local.Master:
		return append(controlplane.Held(), kubelet.Held()...)
	case local.Worker:
		return append(join.Held(), kubelet.Held()...)
	}
	return nil
}
