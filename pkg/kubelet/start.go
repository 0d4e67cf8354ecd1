package kubelet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// IDs of Kubelet.Start and Kubelet.Joined.
const (
	StartID step.ID = "start-kubelet"
	JoinID  step.ID = "join-cluster"
)

// Start is the step that runs the kubelet. Undo only stops the kubelet. Another step
// removes the pods, and Configure removes the files.
func (k Kubelet) Start() step.Step {
	return step.Step{ID: StartID, Name: "start the kubelet", Check: k.checkStarted, Apply: k.start, Undo: k.stop}
}

func (k Kubelet) checkStarted(ctx context.Context) (step.Diff, error) {
	diff, err := k.service().Diff(ctx)
	if err != nil {
		return nil, err
	}
	old, err := k.hasOldToken(ctx)
	if err == nil && old {
		diff = append(diff, "restart the kubelet with the new token")
	}
	shared, sharedErr := filesystem.SharedMount(k.Files.Path(Dir))
	if sharedErr == nil && !shared {
		diff = append(diff, "make "+Dir+" a shared mount")
	}
	return diff, errors.Join(err, sharedErr)
}

// hasOldToken reports whether the kubelet still asks for its certificate with
// a token that was replaced after it had started.
func (k Kubelet) hasOldToken(ctx context.Context) (bool, error) {
	token, err := os.Stat(k.Files.Path(BootstrapConfig))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	cert, err := currentCertificate(k.Files)
	if err == nil && time.Now().Before(cert.NotAfter) {
		return false, nil
	}
	started, running, err := k.service().StartedAt(ctx)
	return running && started.Before(token.ModTime()), err
}

func (k Kubelet) start(ctx context.Context) error {
	if err := k.prepare(); err != nil {
		return err
	}
	old, err := k.hasOldToken(ctx)
	if err == nil && old {
		err = k.service().Remove(ctx)
	}
	if err != nil {
		return err
	}
	return k.service().Run(ctx)
}

// prepare makes what the container mounts, and writes the files of Configure. The agent
// applies Start without Configure: the hash in the container, which is that of the desired
// configuration, must also be that of the file that the kubelet reads.
func (k Kubelet) prepare() error {
	dirs := directories
	// A kubelet that finds this directory watches it. Without it, the watch begins up to a second after
	// somebody makes the directory, and the kubelet lists earlier files only every 20 seconds.
	// https://github.com/kubernetes/kubernetes/blob/v1.37.2/pkg/kubelet/config/file_linux.go#L67-L76
	if k.ControlPlane {
		dirs = append(slices.Clone(dirs), manifestDir)
	}
	for _, dir := range dirs {
		if err := k.Files.MkdirAll(dir); err != nil {
			return err
		}
	}
	if err := ShareMounts(k.Files); err != nil {
		return err
	}
	tree, err := k.files()
	if err != nil {
		return err
	}
	return k.Files.Put(tree)
}

// stop removes the container, and the directories made for its mounts.
func (k Kubelet) stop(ctx context.Context) error {
	if err := k.service().Remove(ctx); err != nil {
		return err
	}
	return removeEmpty(k.Files)
}

func removeEmpty(files host.Files) error { return host.Each(directories, files.RemoveEmpty) }

// Joined waits until the API server has given the kubelet its certificate. A host that
// joins again still has its old one.
func (k Kubelet) Joined() step.Step {
	probe := func(context.Context) error {
		if !k.Files.Exists(Kubeconfig) {
			return errors.New("the kubelet has no certificate yet")
		}
		cert, err := currentCertificate(k.Files)
		if err == nil && time.Now().After(cert.NotAfter) {
			err = errors.New("the certificate of the kubelet " + pki.Expiring(cert, time.Now()))
		}
		return err
	}
	return step.Wait(JoinID, "join the cluster", probe, k.service().Explain).Watched(k.service().Watch)
}

// sharedFile exists if kube-bootstrap has mounted Dir on itself.
const sharedFile = host.StateDir + "/kubelet-mount"

// ShareMounts makes the mounts that the kubelet creates for pods visible to the
// container runtime. It must also be called at boot, before Docker starts, because
// only systemd makes all mounts shared.
func ShareMounts(files host.Files) error {
	dir := files.Path(Dir)
	shared, err := filesystem.SharedMount(dir)
	if err != nil || shared {
		return err
	}
	if err := files.MkdirAll(Dir); err != nil {
		return err
	}
	if err := files.Write(sharedFile, nil, 0o600); err != nil {
		return err
	}
	return filesystem.ShareMount(dir)
}

// unmount removes the mounts of pods, and the mount of ShareMounts.
func unmount(files host.Files) error {
	mounted, err := filesystem.MountedOnItself(files.Path(Dir))
	if err != nil {
		return err
	}
	if !mounted && !files.Exists(sharedFile) {
		return filesystem.UnmountInside(files.Path(Dir))
	}
	if err := filesystem.UnmountBelow(files.Path(Dir)); err != nil {
		return err
	}
	return files.Remove(sharedFile)
}

// Renew has the kubelet of a control plane use new certificates, those of
// Held with the given names. It needs an API server for the serving certificate.
func (k Kubelet) Renew(names []string) step.Step {
	old := map[string][]byte{}
	for _, held := range Held() {
		if slices.Contains(names, held.Name) {
			old[held.Path], _ = k.Files.Read(held.Path)
		}
	}
	if len(old) == 0 {
		return step.Step{}
	}
	return step.Step{
		ID: "renew-kubelet", Name: "renew the certificates of the kubelet",
		Check: func(context.Context) (diff step.Diff, err error) {
			for _, path := range unrenewed(k.Files, old) {
				diff = append(diff, "renew "+path)
			}
			return diff, nil
		},
		Apply: func(ctx context.Context) error { return k.renew(ctx, old) },
	}
}

// unrenewed lists the files of old that have no new certificate yet.
func unrenewed(files host.Files, old map[string][]byte) (paths []string) {
	for path, before := range old {
		now, err := files.Read(path)
		if err == nil {
			_, err = pki.ParseCertificate(now)
		}
		if err != nil || bytes.Equal(now, before) {
			paths = append(paths, path)
		}
	}
	return paths
}

// renew starts the kubelet again, because it reads its certificates only when it
// starts. Its pods keep running. Without a serving certificate it asks for one.
func (k Kubelet) renew(ctx context.Context, old map[string][]byte) error {
	if err := k.service().Remove(ctx); err != nil {
		return err
	}
	for _, path := range unrenewed(k.Files, old) {
		replace := k.writePair
		if path == servingPair {
			replace = func(context.Context) error { return k.Files.Remove(servingPair) }
		}
		if err := replace(ctx); err != nil {
			return err
		}
	}
	if err := k.start(ctx); err != nil {
		return err
	}
	return step.Until(ctx, func(context.Context) error {
		if left := unrenewed(k.Files, old); len(left) > 0 {
			return fmt.Errorf("the kubelet has no new %s yet", left[0])
		}
		return nil
	}, k.service().Explain)
}

// Serving is the name of the serving certificate in Held.
const Serving = "kubelet-server"

const servingPair = pkiDir + "/kubelet-server-current.pem"

// Held lists the certificates of a kubelet, which renews them itself.
func Held() []pki.CertificateFile {
	const remedy = "see in `docker logs kubelet` why the kubelet has not renewed its certificate"
	return []pki.CertificateFile{
		{
			Name: "kubelet-client", Path: currentPair, Purpose: "the kubelet shows it to the API server",
			RenewedBy: "kubelet", Remedy: remedy,
		},
		{Name: Serving, Path: servingPair, Purpose: "the kubelet serves with it", RenewedBy: "kubelet", Remedy: remedy},
	}
}
