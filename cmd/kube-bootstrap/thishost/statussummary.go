package thishost

import (
	"fmt"
	"io"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// hostIdentity is what identifies a host in its cluster.
type hostIdentity struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Kubernetes string `json:"kubernetesVersion"`
	Subnet     string `json:"subnet,omitempty"` // of its containers and pods; empty: none yet
}

func identityOf(h *local.Host) hostIdentity {
	return hostIdentity{h.Config.HostName, h.Config.IPAddress, h.Config.KubernetesVersion, h.Subnet()}
}

// printSummary prints the state of the host in a few lines, before the steps.
func (s Status) printSummary(w io.Writer) {
	if s.Role == local.Loaded {
		return
	}
	rows := [][2]string{
		{"host", s.Host.Name + ", " + s.Host.Address},
		{"Kubernetes", s.Host.Kubernetes},
		{"subnet", s.Host.Subnet},
		{"steps", s.countSteps()},
		{"API servers", s.countAPIServers()},
		{"etcd", s.countMembers()},
	}
	for _, row := range rows {
		if row[1] != "" {
			output.Row(w, row[0], row[1])
		}
	}
}

func (s Status) countSteps() string {
	var inPlace, missing, unknown int
	for _, one := range s.Steps {
		switch {
		case one.Error != "":
			unknown++
		case one.InPlace:
			inPlace++
		default:
			missing++
		}
	}
	text := []string{fmt.Sprintf("%d in place", inPlace)}
	if missing > 0 {
		text = append(text, fmt.Sprintf("%d missing", missing))
	}
	if unknown > 0 {
		text = append(text, fmt.Sprintf("%d unknown", unknown))
	}
	return strings.Join(text, ", ")
}

// countAPIServers returns "" if the host does not know the control planes yet.
func (s Status) countAPIServers() string {
	return count(s.ControlPlanes, func(c balancer.ControlPlane) bool { return c.APIServer }, "ready")
}

// countMembers returns "" on a worker, which cannot ask etcd for its members.
func (s Status) countMembers() string {
	return count(s.Etcd, func(m etcd.MemberStatus) bool { return m.Healthy }, "members healthy")
}

// count returns how many of all are good, "" if there are none.
func count[T any](all []T, good func(T) bool, state string) string {
	if len(all) == 0 {
		return ""
	}
	n := 0
	for _, one := range all {
		if good(one) {
			n++
		}
	}
	return fmt.Sprintf("%d of %d %s", n, len(all), state)
}

func (s Status) printExpiry(w io.Writer) {
	next := s.NextExpiry
	switch {
	case s.CertificateExpiry != "":
		fmt.Fprintln(w, s.CertificateExpiry)
	case next != nil:
		fmt.Fprintf(w, "of the certificates, %s expires first: on %s, in %s\n", next.Name, expires(*next), left(*next))
	}
}
