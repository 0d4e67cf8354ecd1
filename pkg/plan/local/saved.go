package local

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/containerd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kubelet"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// The roles of a host.
const (
	ControlPlane = config.RoleControlPlane
	Worker       = config.RoleWorker
	// Loaded is the role of a host that has the images and the registry
	// configuration and is not part of a cluster yet.
	Loaded = "loaded"
)

const (
	// RoleFile contains the role of a host.
	RoleFile = host.StateDir + "/role"
	// KeptImagesFile contains the role of a host after a turndown with kept images. The
	// host is not part of a cluster any more, but a second turndown can remove
	// the images.
	KeptImagesFile = host.StateDir + "/kept"
)

// Saved is the saved role and settings of a host.
type Saved struct {
	Role   string // Master, Worker, Loaded, or ""
	Kept   string // the role before a turndown that kept the images
	Config config.Config
	// Lost is the problem that the settings cannot be read. Config then has the
	// defaults, which only turndown may use.
	Lost error
}

// Installed reports whether the host is set up completely or partly. A host
// with loaded images only is not installed.
func (s Saved) Installed() bool { return s.Role != "" && s.Role != Loaded }

// WithInForce returns cfg with the saved values of all settings that cannot change on
// this host, and the given values that differ from them.
//
// A verification key stays until a run gives another one, or an empty one: a
// configuration file without it must not make a host accept unsigned bundles.
func (s Saved) WithInForce(cfg config.Config, given config.Origins) (config.Config, []config.Difference) {
	if s.Lost == nil && given["verifyKey"].Source <= config.FromHost {
		cfg.VerifyKey = s.Config.VerifyKey
	}
	if !s.Installed() || s.Lost != nil {
		return cfg, nil
	}
	return cfg.WithInForce(config.FixedFor(s.Role), s.Config, given)
}

// ReadSaved returns the role and settings of this host, the zero Saved if it
// has none. It derives a missing or damaged role from other files.
func ReadSaved(files host.Files) (Saved, error) {
	kept, keptErr := readRole(files, KeptImagesFile)
	role, err := readRole(files, RoleFile)
	saved := Saved{Kept: kept, Role: role}
	if err := cmp.Or(keptErr, err); err != nil {
		return saved, err
	}
	switch kept := files.Exists(KeptImagesFile); {
	case saved.Role == "" && !kept:
		saved.Role = guessRole(files)
	case saved.Role == "" && saved.Kept == "":
		saved.Kept = Loaded
	}
	if saved.Role == "" && saved.Kept == "" {
		return saved, nil
	}
	saved.Config, err = file.ReadSaved(files.Path(config.SavedPath))
	if err != nil {
		saved.Config, saved.Lost = config.Default(), settingsLost(saved.Role, err)
	}
	return saved, nil
}

// readRole returns "" if the role is missing or damaged.
func readRole(files host.Files, path string) (string, error) {
	data, err := files.Read(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	role := strings.TrimSpace(string(data))
	if !slices.Contains([]string{ControlPlane, Worker, Loaded}, role) {
		role = ""
	}
	return role, nil
}

// guessRole derives the role from the files that hosts of each role have.
func guessRole(files host.Files) string {
	ours := slices.Concat([]string{config.SavedPath, Binary, containerd.ConfigFile}, bootstrapdocker.ServiceFiles)
	ofMaster := []string{etcd.DataDir, controlplane.APIServerPod, controlplane.EtcdCA + ".key"}
	switch {
	case !slices.ContainsFunc(ours, files.Exists):
		return ""
	case slices.ContainsFunc(ofMaster, files.Exists):
		return ControlPlane
	case slices.ContainsFunc([]string{join.DataFile, kubelet.Kubeconfig, kubelet.BootstrapConfig}, files.Exists):
		return Worker
	}
	return Loaded
}

func settingsLost(role string, err error) error {
	command := "kube-bootstrap " + role
	if role != ControlPlane && role != Worker {
		command = "kube-bootstrap offline bootstrap"
	}
	return &step.Problem{
		Name: "settings-lost", Firm: true,
		Text: fmt.Sprintf("the settings of this host, %s, cannot be read: %v", config.SavedPath, err),
		Remedy: fmt.Sprintf("restore the file from a backup, run `%s --config FILE` with all settings "+
			"that this host was set up with, or `kube-bootstrap turndown`", command),
	}
}

// Changing reports whether the settings of this run differ from those in force.
func (h *Host) Changing() bool {
	if !h.Saved.Installed() {
		return false
	}
	now, err := file.Marshal(h.Config)
	old, oldErr := file.Marshal(h.Saved.Config)
	return err == nil && oldErr == nil && !bytes.Equal(now, old)
}

// Upgrading reports whether the versions of this run differ from those in
// force. A failed run may then have started newer components, and etcd cannot
// read its data with an older version.
func (h *Host) Upgrading() bool {
	was, now := h.Saved.Config, h.Config
	return h.Saved.Installed() && (was.KubernetesVersion != now.KubernetesVersion || was.EtcdVersion != now.EtcdVersion)
}

// CompleteFile exists if the last run has applied all steps. Without it the
// agent repairs nothing, because a run is in progress or was interrupted.
const CompleteFile = host.StateDir + "/complete"

// CompleteMark is that file.
var CompleteMark = host.File{
	Path: CompleteFile, Data: []byte("The last run applied all steps. The agent repairs this host.\n"),
}

// Complete reports whether the last run has applied all steps.
func Complete(files host.Files) bool { return files.Exists(CompleteFile) }

// OpenFile exists on a control plane once the API server has the rights of the agent and of
// joining hosts. The agent does not use the API server before.
const OpenFile = host.StateDir + "/open"

// OpenMark is that file.
var OpenMark = host.File{Path: OpenFile, Data: []byte("Hosts can join. The agent answers their requests.\n")}

// Suspend stops repairs by the agent until a run of master or worker
// succeeds.
func (h *Host) Suspend() error { return h.Files.Remove(CompleteFile) }
