package join

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

// The files in which a joining host saves its join data.
const (
	DataFile            = host.StateDir + "/handover.json"
	ClusterCAFile       = "/etc/kubernetes/pki/ca.crt"
	EtcdCAFile          = "/etc/kubernetes/pki/etcd/ca.crt"
	BootstrapKubeconfig = "/etc/kubernetes/bootstrap-kubelet.conf"
	KubeletKubeconfig   = "/etc/kubernetes/kubelet.conf"
	// KubeletCertificate exists once the API server has issued the certificate of the kubelet, which writes its
	// kubeconfig long before.
	KubeletCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
	// KubeletCertificates matches this certificate and the earlier ones of the kubelet.
	KubeletCertificates = "/var/lib/kubelet/pki/kubelet-client-*.pem"
)

// Data is what a control plane gives to a host that joins.
type Data struct {
	ClusterCA     []byte   `json:"-"` // PEM
	Server        string   `json:"server"`
	ServerVersion string   `json:"serverVersion"`
	Settings      []byte   `json:"settings"` // of the whole cluster, YAML of the caller
	EtcdCA        []byte   `json:"-"`        // PEM
	Registry      []byte   `json:"-"`        // as Publisher was given it; the caller keeps it
	VerifyKey     []byte   `json:"-"`        // PEM; nil: bundles need no signature
	ControlPlanes []string `json:"-"`        // addresses of all
	// Shared is what control planes share, by path; nil for a worker.
	Shared map[string][]byte `json:"-"`
}

// Joining is this host's way into the cluster.
type Joining struct {
	Files  host.Files
	Target TargetCluster // may be empty on a host that has joined already
	// Known is the part of the join data that the settings of a joined host contain. A lost record is written
	// again from Known, without a control plane.
	Known Data
	// Shares lists the files, without their content, that the other control plane sends to a control plane;
	// none for a worker.
	Shares []host.File

	mu    sync.Mutex
	found *Data
}

// Data returns the join data: from this host's files if it has joined before, else by Discover, once. After an
// interrupted join the host presents its token again, because it may have expired or been replaced.
func (j *Joining) Data(ctx context.Context) (Data, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.found != nil {
		return *j.found, nil
	}
	saved, err := j.load()
	switch {
	case err == nil:
		saved, err = j.again(ctx, saved)
	case host.Lost(err) && j.Target.Token.ID == "" && j.Known.Server != "":
		err = lostData(err)
	case host.Lost(err):
		saved, err = Discover(ctx, j.Target)
	}
	if err != nil {
		return Data{}, err
	}
	j.found = &saved
	return saved, nil
}

func (j *Joining) again(ctx context.Context, saved Data) (Data, error) {
	if err := j.same(saved); err != nil {
		return Data{}, err
	}
	if j.Target.Token.ID == "" || j.Target.CAHash == "" || j.finished() {
		return saved, nil
	}
	return Discover(ctx, j.Target)
}

// finished reports whether this host needs nothing more of the control plane.
func (j *Joining) finished() bool {
	if len(j.Shares) == 0 {
		return j.joined()
	}
	return !slices.ContainsFunc(j.Shares, func(f host.File) bool { return !j.Files.Exists(f.Path) })
}

// joined reports whether the kubelet has a certificate of its own that is good today; without, only a token
// lets it in.
func (j *Joining) joined() bool {
	cert, err := pki.ReadCertificate(j.Files.Read, KubeletCertificate)
	return err == nil && time.Now().Before(cert.NotAfter)
}

// same returns a problem if --ca-cert-hash belongs to another cluster.
func (j *Joining) same(saved Data) error {
	if j.Target.CAHash == "" {
		return nil
	}
	want, err := parseCAHash(j.Target.CAHash)
	if err == nil && !hasCA(saved.ClusterCA, want) {
		return problemNamed("joined-another",
			"this host belongs to another cluster: its certificate authority does not have the hash given with "+
				"--ca-cert-hash",
			"run `kube-bootstrap turndown` first; if `certs rotate --ca` has replaced the certificate authority of "+
				"this very cluster, leave out --ca-cert-hash")
	}
	return err
}

// record contains the join data that has no separate file.
var record = host.Record[Data]{Path: DataFile, Valid: func(h Data) error {
	if h.Server == "" || len(h.Settings) == 0 {
		return errors.New("it names no server or no settings")
	}
	return nil
}}

// load reads what an earlier join kept. The error is fs.ErrNotExist or host.Damaged if a part of it was lost
// that this host does not have elsewhere.
func (j *Joining) load() (Data, error) {
	h, err := record.Read(j.Files)
	if host.Lost(err) && j.Known.Server != "" && j.finished() {
		h, err = j.Known, nil
	}
	if err != nil {
		return h, err
	}
	for _, ca := range []struct {
		path string
		into *[]byte
	}{{ClusterCAFile, &h.ClusterCA}, {EtcdCAFile, &h.EtcdCA}} {
		data, err := j.Files.Read(ca.path)
		if _, damaged := pki.ParseCertificate(data); err == nil && damaged != nil {
			err = &host.Damaged{Path: ca.path, Err: damaged}
		}
		if host.Lost(err) && ca.path == ClusterCAFile {
			data, err = j.pinnedCA(err)
		}
		if err != nil {
			return h, err
		}
		*ca.into = data
	}
	return h, nil
}

// pinnedCA returns the authority that the kubelet's kubeconfig trusts, if it has the hash by which this host
// knows its cluster; else the error is lost.
func (j *Joining) pinnedCA(lost error) ([]byte, error) {
	data, err := j.Files.Read(KubeletKubeconfig)
	if err != nil {
		return nil, lost
	}
	config, err := pki.ParseKubeconfig(data)
	if err != nil || !hasCA(config.Authority, j.Target.CAHash) {
		return nil, lost
	}
	return config.Authority, nil
}
