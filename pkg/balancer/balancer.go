// Package balancer forwards connections of a host to a ready control plane:
// one port on 127.0.0.1 to an API server, the next one to an etcd. The
// components of the host therefore need not know the control planes.
//
//	kubelet, kube-proxy ──▶ 127.0.0.1:6440 ──▶ API server of this host, else of another
//	flanneld            ──▶ 127.0.0.1:6441 ──▶ etcd, likewise; from a worker the gate of etcd
//
// It forwards TCP without reading it: TLS is end to end, and the certificates
// of the API servers are valid for 127.0.0.1.
package balancer

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// StateDir contains the records of the balancer.
const StateDir = host.StateDir + "/balancer"

var (
	settingsRecord = host.Record[Settings]{Path: StateDir + "/settings.json"}
	stateRecord    = host.Record[Backends]{Path: StateDir + "/control-planes.json", Valid: Backends.valid}
)

// Balancer is the balancer of this host, a part of its agent.
type Balancer struct {
	Settings
	Files host.Files
	// Seeds are the control planes to start with, until one has provided the list of all.
	Seeds []string
}

// Settings are the settings of the running balancer. Paths are paths of the host.
type Settings struct {
	Own       string `json:"own"`       // address of this host, whose servers are preferred
	Port      int    `json:"port"`      // on 127.0.0.1, to an API server; Port+1 is for etcd
	APIPort   int    `json:"apiPort"`   // of the API servers
	ClusterCA string `json:"clusterCA"` // CA of the API servers
	EtcdPort  int    `json:"etcdPort"`  // on control planes: of etcd, or for a worker of the gate of etcd
	EtcdCA    string `json:"etcdCA"`
	Cert      string `json:"cert"` // client certificate for etcd that may read the list of control planes
	Key       string `json:"key"`
	// First is the control plane by which a worker reaches the cluster; "" on a control plane. If another one is
	// named, such as after a restore, it replaces what the worker knows of the control planes before.
	First string `json:"first,omitempty"`
}

// Address returns the balancer's address for API servers on every host.
func (s Settings) Address() string { return address("127.0.0.1", s.Port) }

// EtcdAddress returns the balancer's address for etcd on every host.
func (s Settings) EtcdAddress() string { return address("127.0.0.1", s.Port+1) }

func address(ip string, port int) string { return net.JoinHostPort(ip, strconv.Itoa(port)) }

// Records returns the files that the running balancer reads at its start. It
// omits the state once a control plane has provided the list of all. The
// certificates are not among them: the balancer reads them for each connection.
func (b Balancer) Records() ([]host.File, error) {
	settings, settingsErr := settingsRecord.File(b.Settings)
	known, err := b.known()
	return append(known, settings), cmp.Or(settingsErr, err)
}

// ReadSettings returns the settings that Records describes.
func ReadSettings(files host.Files) (Settings, error) {
	return settingsRecord.Read(files)
}

// Listens returns nil if the balancer forwards to an etcd.
func (b Balancer) Listens(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.EtcdAddress())
	if err != nil {
		return err
	}
	return conn.Close()
}

// Backends is what the host knows of the control planes, also after a reboot.
type Backends struct {
	ControlPlanes []Backend `json:"controlPlanes"`
	// Known is set once a control plane has provided the list of all.
	Known bool `json:"told"`
}

// Backend is a control plane as this host sees it. A single one is not probed.
type Backend struct {
	IP        string `json:"ip"`
	Joining   bool   `json:"joining,omitempty"` // it does not serve yet
	APIServer bool   `json:"apiServer"`         // last known readiness
	Etcd      bool   `json:"etcd"`
}

// Addresses lists the addresses of the control planes that are not joining.
func (s Backends) Addresses() []string {
	var all []string
	for _, c := range s.ControlPlanes {
		if !c.Joining {
			all = append(all, c.IP)
		}
	}
	return all
}

// ReadBackends reads the saved state, or returns fs.ErrNotExist: control planes provide it again.
func ReadBackends(files host.Files) (Backends, error) {
	s, err := stateRecord.Read(files)
	if err != nil {
		err = errors.Join(fs.ErrNotExist, err)
	}
	return s, err
}

func (s Backends) valid() error {
	if len(s.ControlPlanes) == 0 {
		return errors.New("it contains no control plane")
	}
	for _, c := range s.ControlPlanes {
		if _, err := netip.ParseAddr(c.IP); err != nil {
			return err
		}
	}
	return nil
}

// Known is the step that writes the initial state if no control planes are known.
func (b Balancer) Known() step.Step {
	return b.Files.Step("control-planes", "know the control planes", b.known)
}

// moved reports whether another control plane is named than before.
func (b Balancer) moved() bool {
	before, err := settingsRecord.Read(b.Files)
	return err == nil && before.First != "" && before.First != b.First
}

// known returns the file of the initial state, unless a control plane has provided its content.
func (b Balancer) known() ([]host.File, error) {
	begin, _ := ReadBackends(b.Files) // the zero State if there is none
	if b.moved() {
		begin = Backends{}
	}
	last := len(begin.ControlPlanes)
	for _, ip := range b.Seeds {
		if !slices.ContainsFunc(begin.ControlPlanes, func(c Backend) bool { return c.IP == ip }) {
			begin.ControlPlanes = append(begin.ControlPlanes, Backend{IP: ip})
		}
	}
	if begin.Known || len(begin.ControlPlanes) == last {
		return nil, nil
	}
	file, err := stateRecord.File(begin)
	return []host.File{file}, err
}
