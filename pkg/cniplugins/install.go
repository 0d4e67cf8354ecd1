// Package cniplugins installs the CNI plugins into the directory where containerd looks for them.
// It keeps each plugin of the user that it replaces, and restores it.
package cniplugins

import (
	"archive/tar"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	digest "github.com/opencontainers/go-digest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// PluginSource provides the plugins for an architecture.
type PluginSource interface {
	// CNIPlugins returns the digest of each plugin by name, or "" if any content is accepted.
	CNIPlugins(arch string) (map[string]digest.Digest, error)
	// ReadCNIPlugins opens a tar archive that has at least the named plugins, in any directory.
	ReadCNIPlugins(ctx context.Context, arch string, names []string) io.ReadCloser
	Close() error
}

// Installer installs the plugins of a source on a host.
type Installer struct {
	Files host.Files
	Arch  string
	// Open opens the source. If it returns fs.ErrNotExist, the plugins of the host suffice.
	Open func(context.Context) (PluginSource, error)
	// Remote reports that Open is slow or may fail: then existing plugins suffice.
	Remote bool
}

// Step returns the step. A plugin of the user that supports the required CNI version stays.
func (i Installer) Step() step.Step {
	return step.Step{ID: "cni-plugins", Name: "install the CNI plugins", Check: i.check, Apply: i.apply, Undo: i.undo}
}

// specVersion is the CNI version of our network configuration.
const specVersion = "1.0.0"

func pluginPath(name string) string { return path.Join(image.CNIDir, name) }

func (i Installer) check(ctx context.Context) (step.Diff, error) {
	missing, err := i.missing(ctx)
	if err != nil {
		return nil, err
	}
	diff, err := i.recordDiff()
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		diff = append(diff, "install "+pluginPath(name))
	}
	return diff, err
}

// missing returns the digests of the plugins that must be installed.
func (i Installer) missing(ctx context.Context) (map[string]digest.Digest, error) {
	if i.Remote && i.allExist() {
		return nil, nil
	}
	from, err := i.Open(ctx)
	if errors.Is(err, fs.ErrNotExist) && i.allExist() {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer from.Close()
	missing, err := from.CNIPlugins(i.Arch)
	if err != nil {
		return nil, err
	}
	record, err := i.record()
	if err != nil {
		return nil, err
	}
	missing = maps.Clone(missing)
	for name, want := range missing {
		ok, err := i.usable(ctx, name, want, record)
		if err != nil {
			return nil, err
		}
		if ok {
			delete(missing, name)
		}
	}
	return missing, nil
}

func (i Installer) allExist() bool {
	return !slices.ContainsFunc(image.CNIPlugins, func(name string) bool { return !i.Files.Exists(pluginPath(name)) })
}

// usable reports whether the host has the wanted plugin, or another plugin of this name that
// supports our CNI version.
func (i Installer) usable(ctx context.Context, name string, want digest.Digest, record pluginRecord) (bool, error) {
	data, err := i.Files.Read(pluginPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := digest.FromBytes(data)
	if now == want {
		return i.mode(name)&0o111 != 0, nil
	}
	if record[name].ours(now) {
		return false, nil
	}
	return supportsSpec(ctx, i.Files.Path(pluginPath(name))), nil
}

func (i Installer) mode(name string) os.FileMode {
	info, err := os.Stat(i.Files.Path(pluginPath(name)))
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

func supportsSpec(ctx context.Context, plugin string) bool {
	out, err := host.Command{Args: []string{plugin}, Env: []string{"CNI_COMMAND=VERSION"}}.Run(ctx)
	var answer struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	return err == nil && json.Unmarshal(out, &answer) == nil && slices.Contains(answer.SupportedVersions, specVersion)
}

func (i Installer) apply(ctx context.Context) error {
	if err := i.repairRecord(); err != nil {
		return err
	}
	missing, err := i.missing(ctx)
	if err != nil || len(missing) == 0 {
		return err
	}
	files, err := i.read(ctx, missing)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := i.install(name, data); err != nil {
			return fmt.Errorf("install %s: %w", pluginPath(name), err)
		}
	}
	return nil
}

// read reads the missing plugins from the source and verifies their digests.
func (i Installer) read(ctx context.Context, missing map[string]digest.Digest) (map[string][]byte, error) {
	from, err := i.Open(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	archive := from.ReadCNIPlugins(ctx, i.Arch, slices.Collect(maps.Keys(missing)))
	defer archive.Close()
	files, err := extract(archive, missing)
	if err == nil && len(files) != len(missing) {
		err = fmt.Errorf("the image that holds the CNI plugins has %d of the %d that are missing here",
			len(files), len(missing))
	}
	return files, err
}

// largestPlugin is larger than any plugin, in bytes. A plugin is in memory until its
// digest is verified.
const largestPlugin = 64 << 20

func extract(archive io.Reader, wanted map[string]digest.Digest) (map[string][]byte, error) {
	files := map[string][]byte{}
	return files, rootfs.EachEntry(archive, func(name string, h *tar.Header, content io.Reader) error {
		want, ok := wanted[path.Base(name)]
		if !ok || h.Typeflag != tar.TypeReg {
			return nil
		}
		if h.Size > largestPlugin {
			return fmt.Errorf("CNI plugin %s has %d bytes, and more than %d are refused; get another bundle",
				h.Name, h.Size, largestPlugin)
		}
		data, err := io.ReadAll(content)
		if err == nil && want != "" && digest.FromBytes(data) != want {
			err = fmt.Errorf("CNI plugin %s is not what its digest says", h.Name)
		}
		files[path.Base(name)] = data
		return err
	})
}
