// Package balancer leads a host to whichever control plane is alive: one port
// on 127.0.0.1 leads to an API server, the next one to an etcd. So nothing on
// the host needs to know how many control planes there are, or where.
//
//	kubelet, kube-proxy ──▶ 127.0.0.1:6440 ──▶ API server of this host, else of another
//	flanneld            ──▶ 127.0.0.1:6441 ──▶ etcd, likewise
//
// It hands bytes on and reads none: TLS goes through it from end to end, and
// the API servers' certificates hold for 127.0.0.1.
package balancer

import (
	"context"
	"encoding/json"
	"net"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// StateDir holds the records of the balancer.
const StateDir = host.StateDir + "/balancer"

const settingsFile = StateDir + "/settings.json"

// Balancer is the balancer of this host, a part of its agent.
type Balancer struct {
	Settings
	Files host.Files
	// Seeds are the control planes to begin with, until one of them has told
	// which others there are.
	Seeds []string
}

// Settings are what the running balancer itself must know. Paths are those on
// the host.
type Settings struct {
	Own       string `json:"own"`       // the address of this host, whose servers are preferred
	Port      int    `json:"port"`      // on 127.0.0.1, to an API server; the next one is to an etcd
	APIPort   int    `json:"apiPort"`   // of the API servers
	ClusterCA string `json:"clusterCA"` // the authority of the API servers
	EtcdCA    string `json:"etcdCA"`
	Cert      string `json:"cert"` // a client certificate of etcd that may read the list of control planes
	Key       string `json:"key"`
}

// Address is where an API server is found on every host.
func (s Settings) Address() string { return local(s.Port) }

// EtcdAddress is where an etcd is found on every host.
func (s Settings) EtcdAddress() string { return local(s.Port + 1) }

func local(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }

// saved are the settings in their file. The fingerprint makes the file differ,
// and so the agent restart, when an authority is replaced. The certificate that
// the balancer shows is read whenever it is shown.
type saved struct {
	Settings
	Certificates string `json:"certificates"`
}

// Records returns the files that the running balancer reads at its start. The
// control planes are not among them once one of them has told all of them:
// that is more than the Seeds.
func (b Balancer) Records() ([]host.File, error) {
	certificates, err := b.Files.Fingerprint(b.ClusterCA, b.EtcdCA)
	if err != nil {
		return nil, err
	}
	settings, err := record(settingsFile, saved{b.Settings, certificates})
	if err != nil {
		return nil, err
	}
	known, err := b.known()
	return append(known, settings), err
}

func record(path string, value any) (host.File, error) {
	data, err := json.Marshal(value)
	return host.File{Path: path, Data: append(data, '\n')}, err
}

// ReadSettings returns the settings that Records describes.
func ReadSettings(files host.Files) (Settings, error) {
	s, err := host.Record[saved]{Path: settingsFile}.Read(files)
	return s.Settings, err
}

// seeded returns the state to begin with, and whether that must be written:
// what a control plane has told is more than we know.
func (b Balancer) seeded() (begin State, stale bool) {
	begin, _ = ReadState(b.Files) // none is an empty one
	if begin.Told {
		return begin, false
	}
	for _, ip := range b.Seeds {
		if !slices.ContainsFunc(begin.ControlPlanes, func(c ControlPlane) bool { return c.IP == ip }) {
			begin.ControlPlanes, stale = append(begin.ControlPlanes, ControlPlane{IP: ip}), true
		}
	}
	return begin, stale
}

// Listens returns nil once the balancer leads to an etcd.
func (b Balancer) Listens(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", b.EtcdAddress())
	if err != nil {
		return err
	}
	return conn.Close()
}
