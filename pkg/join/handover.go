package join

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Where a joining host keeps what it was handed.
const (
	HandoverFile        = host.StateDir + "/handover.json"
	ClusterCAFile       = "/etc/kubernetes/pki/ca.crt"
	EtcdCAFile          = "/etc/kubernetes/pki/etcd/ca.crt"
	BootstrapKubeconfig = "/etc/kubernetes/bootstrap-kubelet.conf"
	KubeletKubeconfig   = "/etc/kubernetes/kubelet.conf"
	// KubeletCertificate is there once the API server has given the kubelet its
	// own; the kubelet writes its kubeconfig long before.
	KubeletCertificate = "/var/lib/kubelet/pki/kubelet-client-current.pem"
)

// Handover is what a master gives to a host that joins.
type Handover struct {
	ClusterCA     []byte `json:"-"` // PEM
	Server        string `json:"server"`
	ServerVersion string `json:"serverVersion"`
	Settings      []byte `json:"settings"` // of the whole cluster, YAML of the caller
	EtcdCA        []byte `json:"-"`        // PEM
	Registry      []byte `json:"-"`        // as Publisher was given it; the caller keeps it
	// Shared is what control planes share, by path; nil for a worker.
	Shared map[string][]byte `json:"-"`
}

// Joining is this host's way into the cluster.
type Joining struct {
	Files  host.Files
	Target Target // may be empty on a host that has joined already
	// Known is what the settings of a host that has joined say of the handover:
	// with it, a record that was lost is written again without the master.
	Known Handover
	// Shares are the files, without their content, that this host is handed to
	// become a control plane; none for a worker.
	Shares []host.File

	mu    sync.Mutex
	found *Handover
}

// Handover returns what the master handed over: from this host's files if it
// has joined before, else by Discover, once. After an interrupted join
// the host presents its token again, because it may have expired or been replaced.
func (j *Joining) Handover(ctx context.Context) (Handover, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.found != nil {
		return *j.found, nil
	}
	kept, err := j.load()
	switch {
	case err == nil:
		kept, err = j.again(ctx, kept)
	case host.Lost(err) && j.Target.Token.ID == "" && j.Known.Server != "":
		err = lostHandover(err)
	case host.Lost(err):
		kept, err = Discover(ctx, j.Target)
	}
	if err != nil {
		return Handover{}, err
	}
	j.found = &kept
	return kept, nil
}

func (j *Joining) again(ctx context.Context, kept Handover) (Handover, error) {
	if err := j.same(kept); err != nil {
		return Handover{}, err
	}
	if j.Target.Token.ID == "" || j.Target.CAHash == "" || j.finished() {
		return kept, nil
	}
	return Discover(ctx, j.Target)
}

// finished reports whether this host needs nothing more of the master.
func (j *Joining) finished() bool {
	if len(j.Shares) == 0 {
		return j.joined()
	}
	return !slices.ContainsFunc(j.Shares, func(f host.File) bool { return !j.Files.Exists(f.Path) })
}

// joined reports whether the kubelet has a certificate of its own that is good
// today; without, only a token lets it in.
func (j *Joining) joined() bool {
	data, err := j.Files.Read(KubeletCertificate)
	if err != nil {
		return false
	}
	block, _ := pem.Decode(data)
	if block == nil {
		return false
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	return err == nil && time.Now().Before(cert.NotAfter)
}

// same keeps a host of one cluster from being told to join another.
func (j *Joining) same(kept Handover) error {
	if j.Target.CAHash == "" {
		return nil
	}
	want, err := ParseCAHash(j.Target.CAHash)
	if err != nil {
		return err
	}
	if !hasCA(kept.ClusterCA, want) {
		return joinedAnother()
	}
	return nil
}

// record is what of a handover has no file of its own.
var record = host.Record[Handover]{Path: HandoverFile, Valid: func(h Handover) error {
	if h.Server == "" || len(h.Settings) == 0 {
		return errors.New("it names no server or no settings")
	}
	return nil
}}

// load reads what an earlier join kept. The error is fs.ErrNotExist or
// host.Damaged if a part of it was lost that this host does not have elsewhere.
func (j *Joining) load() (Handover, error) {
	h, err := record.Read(j.Files)
	if host.Lost(err) && j.Known.Server != "" && j.finished() {
		h, err = j.Known, nil
	}
	if err != nil {
		return h, err
	}
	for _, part := range h.parts() {
		data, err := j.Files.Read(part.path)
		if err == nil && part.valid(data) != nil {
			err = &host.Damaged{Path: part.path, Err: part.valid(data)}
		}
		if host.Lost(err) && part.path == ClusterCAFile {
			data, err = j.pinnedCA(err)
		}
		if err != nil {
			return h, err
		}
		*part.into = data
	}
	return h, nil
}

// pinnedCA returns the authority that the kubelet's kubeconfig trusts, if it has
// the hash by which this host knows its cluster; else the error is lost.
func (j *Joining) pinnedCA(lost error) ([]byte, error) {
	data, err := j.Files.Read(KubeletKubeconfig)
	if err != nil {
		return nil, lost
	}
	config, err := pki.ParseKubeconfig(data)
	if err != nil {
		return nil, lost
	}
	if !hasCA(config.Authority, j.Target.CAHash) {
		return nil, lost
	}
	return config.Authority, nil
}

// part is a file of the handover.
type part struct {
	path  string
	into  *[]byte
	valid func([]byte) error
}

func (h *Handover) parts() []part {
	certificate := func(data []byte) error { _, err := pki.ParseCertificate(data); return err }
	return []part{{ClusterCAFile, &h.ClusterCA, certificate}, {EtcdCAFile, &h.EtcdCA, certificate}}
}

// Save is the step that keeps what the master hands over. Once it is done
// neither master nor token is needed to run it again.
func (j *Joining) Save() step.Step {
	return step.Step{
		Name:  "fetch what the master hands over",
		Check: j.missing,
		Apply: j.save,
		Undo: func(context.Context) error {
			var shared []string
			for _, f := range j.Shares {
				shared = append(shared, f.Path)
			}
			return j.Files.Drop(append(shared, HandoverFile, ClusterCAFile, EtcdCAFile, BootstrapKubeconfig)...)
		},
	}
}

func (j *Joining) missing(context.Context) (step.Diff, error) {
	diff, err := record.Diff(j.Files)
	if err != nil {
		return nil, err
	}
	for _, part := range (&Handover{}).parts() {
		data, err := j.Files.Read(part.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			diff = append(diff, "write "+part.path)
		case err != nil:
			return nil, err
		case part.valid(data) != nil:
			diff = append(diff, fmt.Sprintf("write %s again, which is damaged: %v", part.path, part.valid(data)))
		}
	}
	for _, f := range j.Shares {
		if !j.Files.Exists(f.Path) {
			diff = append(diff, "write "+f.Path)
		}
	}
	if len(j.Shares) == 0 && !j.joined() && !j.keepsToken() {
		diff = append(diff, "write "+BootstrapKubeconfig)
	}
	return diff, nil
}

// keepsToken reports whether the kubelet is told the token that was given now,
// or some token if none was.
func (j *Joining) keepsToken() bool {
	data, err := j.Files.Read(BootstrapKubeconfig)
	return err == nil && (j.Target.Token.ID == "" || bytes.Contains(data, []byte(j.Target.Token.Reveal())))
}

func (j *Joining) save(ctx context.Context) error {
	h, err := j.Handover(ctx)
	if err != nil {
		return err
	}
	tree, err := j.tree(h)
	if err != nil {
		return err
	}
	return j.Files.Put(tree)
}

// tree has the handover last: with it there, Load trusts the rest.
func (j *Joining) tree(h Handover) ([]host.File, error) {
	kept, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return nil, err
	}
	tree := []host.File{
		{Path: ClusterCAFile, Data: h.ClusterCA, Mode: 0o644},
		{Path: EtcdCAFile, Data: h.EtcdCA, Mode: 0o644},
	}
	identity, err := j.identity(h)
	return append(append(tree, identity...), host.File{Path: HandoverFile, Data: kept}), err
}

// identity is what makes a host known to the cluster: a kubelet's token, or
// what control planes share, with which they vouch for themselves.
func (j *Joining) identity(h Handover) ([]host.File, error) {
	if len(j.Shares) > 0 {
		return j.shared(h)
	}
	if j.joined() {
		return nil, nil
	}
	if j.Target.Token.ID == "" {
		return nil, &step.Problem{Name: "token-format", Text: "the kubelet of this host has not joined yet and needs a token", Remedy: "give one with --token"}
	}
	config, err := j.bootstrapKubeconfig(h)
	return []host.File{{Path: BootstrapKubeconfig, Data: config}}, err
}

// shared are those files that this host lacks: what it has since changed, as
// by a new certificate, stays.
func (j *Joining) shared(h Handover) ([]host.File, error) {
	var tree []host.File
	for _, file := range j.Shares {
		if j.Files.Exists(file.Path) {
			continue
		}
		data, ok := h.Shared[file.Path]
		if !ok {
			return nil, &step.Problem{Name: "certificate-key", Text: "this host was not handed " + file.Path,
				Remedy: "run `kube-bootstrap master --join` with a token and a key of `kube-bootstrap token create --control-plane`"}
		}
		tree = append(tree, host.File{Path: file.Path, Data: data, Mode: file.Mode})
	}
	return tree, nil
}

func (j *Joining) bootstrapKubeconfig(h Handover) ([]byte, error) {
	config := clientcmdapi.NewConfig()
	config.Clusters["kubernetes"] = &clientcmdapi.Cluster{Server: h.Server, CertificateAuthorityData: h.ClusterCA}
	config.AuthInfos["kubelet-bootstrap"] = &clientcmdapi.AuthInfo{Token: j.Target.Token.Reveal()}
	config.Contexts["kubelet-bootstrap"] = &clientcmdapi.Context{Cluster: "kubernetes", AuthInfo: "kubelet-bootstrap"}
	config.CurrentContext = "kubelet-bootstrap"
	return clientcmd.Write(*config)
}

// Forget is the step that drops the token once the kubelet has a certificate
// of its own.
func (j *Joining) Forget() step.Step {
	return step.Step{
		Name: "forget the token",
		Check: func(context.Context) (step.Diff, error) {
			if j.Files.Exists(BootstrapKubeconfig) {
				return step.Diff{"remove " + BootstrapKubeconfig}, nil
			}
			return nil, nil
		},
		Apply: func(context.Context) error {
			if !j.joined() {
				return errors.New("the kubelet has no certificate of its own yet")
			}
			return j.Files.Remove(BootstrapKubeconfig)
		},
	}
}
