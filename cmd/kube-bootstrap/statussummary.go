package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
)

// hostIdentity is what identifies a host in its cluster.
type hostIdentity struct {
	Name       string `json:"name"`
	Address    string `json:"address"`
	Kubernetes string `json:"kubernetesVersion"`
	Subnet     string `json:"subnet,omitempty"` // of its containers and pods; empty: none yet
}

func identityOf(h *plan.Host) hostIdentity {
	return hostIdentity{h.Config.HostName, h.Config.IPAddress, h.Config.KubernetesVersion, h.Subnet()}
}

// printSummary prints the state of the host in a few lines, before the layers.
func (s hostStatus) printSummary(w io.Writer) {
	if s.Role == plan.Loaded {
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
			cells(w, row[0], row[1])
		}
	}
}

func (s hostStatus) countSteps() string {
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
func (s hostStatus) countAPIServers() string {
	if len(s.ControlPlanes) == 0 {
		return ""
	}
	ready := 0
	for _, c := range s.ControlPlanes {
		if c.APIServer {
			ready++
		}
	}
	return fmt.Sprintf("%d of %d ready", ready, len(s.ControlPlanes))
}

// countMembers returns "" on a worker, which cannot ask etcd for its members.
func (s hostStatus) countMembers() string {
	if len(s.Etcd) == 0 {
		return ""
	}
	healthy := 0
	for _, m := range s.Etcd {
		if m.Healthy {
			healthy++
		}
	}
	return fmt.Sprintf("%d of %d members healthy", healthy, len(s.Etcd))
}

func (s hostStatus) printExpiry(w io.Writer) {
	next := s.NextExpiry
	switch {
	case s.CertificateExpiry != "":
		fmt.Fprintln(w, s.CertificateExpiry)
	case next != nil:
		fmt.Fprintf(w, "of the certificates, %s expires first: on %s, in %s\n", next.Name, expires(*next), left(*next))
	}
}
