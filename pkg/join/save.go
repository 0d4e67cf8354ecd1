package join

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Save is the step that saves the join data of the control plane. After that, neither the control plane nor a
// token is needed to run the step again.
func (j *Joining) Save() step.Step {
	return step.Step{
		ID: "join-data", Name: "fetch the join data from the control plane",
		Check: j.missing,
		Apply: j.save,
		Undo: func(context.Context) error {
			var shared []string
			for _, f := range j.Shares {
				shared = append(shared, f.Path)
			}
			return j.Files.Drop(append(shared, DataFile, ClusterCAFile, EtcdCAFile, BootstrapKubeconfig)...)
		},
	}
}

func (j *Joining) missing(context.Context) (step.Diff, error) {
	diff, err := record.Diff(j.Files)
	if err != nil {
		return nil, err
	}
	for _, path := range []string{ClusterCAFile, EtcdCAFile} {
		data, err := j.Files.Read(path)
		_, damaged := pki.ParseCertificate(data)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			diff = append(diff, "write "+path)
		case err != nil:
			return nil, err
		case damaged != nil:
			diff = append(diff, fmt.Sprintf("write %s again, which is damaged: %v", path, damaged))
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

// keepsToken reports whether the kubelet has the token of this run, if there is one.
func (j *Joining) keepsToken() bool {
	data, err := j.Files.Read(BootstrapKubeconfig)
	return err == nil && (j.Target.Token.ID == "" || bytes.Contains(data, []byte(j.Target.Token.Reveal())))
}

func (j *Joining) save(ctx context.Context) error {
	h, err := j.Data(ctx)
	if err != nil {
		return err
	}
	saved, err := json.MarshalIndent(h, "", "  ")
	if err != nil {
		return err
	}
	identity, err := j.identity(h)
	if err != nil {
		return err
	}
	// HandoverFile is the last: load uses the others only if it exists.
	return j.Files.Put(slices.Concat(
		[]host.File{{Path: ClusterCAFile, Data: h.ClusterCA, Mode: 0o644},
			{Path: EtcdCAFile, Data: h.EtcdCA, Mode: 0o644}},
		identity, []host.File{{Path: DataFile, Data: saved}},
	))
}

// identity returns the files with which the cluster accepts this host: the token of a kubelet, or the files
// that control planes share, with which a control plane issues its own certificates.
func (j *Joining) identity(h Data) ([]host.File, error) {
	if len(j.Shares) > 0 {
		return j.shared(h)
	}
	if j.joined() {
		return nil, nil
	}
	if j.Target.Token.ID == "" {
		return nil, problemNamed("token-format", "the kubelet of this host has not joined yet and needs a token",
			"give one with --token")
	}
	config, err := pki.Kubeconfig{Server: h.Server, Authority: h.ClusterCA, User: "kubelet-bootstrap",
		Token: j.Target.Token.Reveal()}.Encode()
	return []host.File{{Path: BootstrapKubeconfig, Data: config}}, err
}

// shared returns the shared files that this host lacks. It leaves existing files, which this host may have
// renewed.
func (j *Joining) shared(h Data) ([]host.File, error) {
	var tree []host.File
	for _, file := range j.Shares {
		if j.Files.Exists(file.Path) {
			continue
		}
		data, ok := h.Shared[file.Path]
		if !ok {
			return nil, problemNamed("certificate-key", "the control plane did not send "+file.Path,
				"run `kube-bootstrap master --join` with a token and a key of `kube-bootstrap token create "+
					"--control-plane`")
		}
		tree = append(tree, host.File{Path: file.Path, Data: data, Mode: file.Mode})
	}
	return tree, nil
}

// Forget is the step that removes the token once the kubelet has a certificate.
func (j *Joining) Forget() step.Step {
	return step.When("forget-token", "forget the token", "remove "+BootstrapKubeconfig,
		func(context.Context) (bool, error) {
			return j.Files.Exists(BootstrapKubeconfig), nil
		}, func(context.Context) error {
			if !j.joined() {
				return errors.New("the kubelet has no certificate of its own yet")
			}
			return j.Files.Remove(BootstrapKubeconfig)
		})
}
