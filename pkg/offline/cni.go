package offline

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
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// InstallCNIPlugins is the step that lays the CNI plugins where containerd
// looks for them. A plugin of the owner that serves as well stays.
func (s Source) InstallCNIPlugins() step.Step {
	p := plugins{s}
	return step.Step{Name: "install the CNI plugins", Check: p.check, Apply: p.apply, Undo: p.undo}
}

type plugins struct{ Source }

// pluginRecord remembers what we put over what.
type pluginRecord map[string]plugin

type plugin struct {
	Ours digest.Digest `json:"ours"`
	Kept bool          `json:"kept,omitempty"` // the owner's lies in keptPlugins
	Mode os.FileMode   `json:"mode,omitempty"` // of the owner's
}

var pluginNotes = host.Record[pluginRecord]{Path: pluginRecordPath, Valid: pluginRecord.valid}

func (r pluginRecord) valid() error {
	if len(r) == 0 {
		return errors.New("it names no plugin")
	}
	for name, p := range r {
		if !slices.Contains(image.CNIPlugins, name) {
			return fmt.Errorf("%q is not a plugin of ours", name)
		}
		if err := p.Ours.Validate(); err != nil {
			return err
		}
	}
	return nil
}

const (
	pluginRecordPath = host.StateDir + "/cni-plugins.json"
	keptPlugins      = host.StateDir + "/original-cni"
	// pluginSpec is the CNI version that our network configuration speaks.
	pluginSpec = "1.0.0"
)

func pluginPath(name string) string { return path.Join(image.CNIDir, name) }

func (p plugins) check(ctx context.Context) (step.Diff, error) {
	wanted, err := p.wanted(ctx)
	if err != nil {
		return nil, err
	}
	diff, err := p.recordDiff()
	for _, name := range slices.Sorted(maps.Keys(wanted.Files)) {
		diff = append(diff, "install "+pluginPath(name))
	}
	return diff, err
}

// wanted returns those plugins that the host lacks. A host that has them all
// needs no bundle any more.
func (p plugins) wanted(ctx context.Context) (Plugins, error) {
	if p.asks() && p.allThere() {
		return Plugins{}, nil
	}
	from, err := p.origin(ctx)
	if errors.Is(err, fs.ErrNotExist) && p.allThere() {
		return Plugins{}, nil
	}
	if err != nil {
		return Plugins{}, err
	}
	defer from.Close()
	all, err := from.plugins(p.Arch)
	if err != nil {
		return Plugins{}, err
	}
	record, err := p.record()
	if err != nil {
		return Plugins{}, err
	}
	missing := Plugins{Layer: all.Layer, Files: map[string]digest.Digest{}}
	for name, want := range all.Files {
		fine, err := p.serves(ctx, name, want, record)
		if err != nil {
			return Plugins{}, err
		}
		if !fine {
			missing.Files[name] = want
		}
	}
	return missing, nil
}

func (p plugins) allThere() bool {
	return !slices.ContainsFunc(image.CNIPlugins, func(name string) bool { return !p.Files.Exists(pluginPath(name)) })
}

// serves reports whether a plugin is ours as it shall be, or one of the owner
// that speaks our CNI version.
func (p plugins) serves(ctx context.Context, name string, want digest.Digest, record pluginRecord) (bool, error) {
	data, err := p.Files.Read(pluginPath(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	now := digest.FromBytes(data)
	if now == want {
		return p.mode(name)&0o111 != 0, nil
	}
	if ours, ok := record[name]; ok && ours.Ours == now {
		return false, nil
	}
	return speaks(ctx, p.Files.Path(pluginPath(name))), nil
}

func (p plugins) mode(name string) os.FileMode {
	info, err := os.Stat(p.Files.Path(pluginPath(name)))
	if err != nil {
		return 0
	}
	return info.Mode().Perm()
}

func speaks(ctx context.Context, plugin string) bool {
	out, err := host.Command{Args: []string{plugin}, Env: []string{"CNI_COMMAND=VERSION"}}.Run(ctx)
	var answer struct {
		SupportedVersions []string `json:"supportedVersions"`
	}
	return err == nil && json.Unmarshal(out, &answer) == nil && slices.Contains(answer.SupportedVersions, pluginSpec)
}

func (p plugins) apply(ctx context.Context) error {
	if diff, err := p.recordDiff(); err != nil || len(diff) > 0 {
		record, workedOut := p.record()
		if err := errors.Join(err, workedOut); err != nil {
			return err
		}
		if err := p.replaceRecord(record); err != nil {
			return err
		}
	}
	missing, err := p.wanted(ctx)
	if err != nil || len(missing.Files) == 0 {
		return err
	}
	files, err := p.extract(ctx, missing)
	if err != nil {
		return err
	}
	for name, data := range files {
		if err := p.install(name, data, digest.FromBytes(data)); err != nil {
			return fmt.Errorf("install %s: %w", pluginPath(name), err)
		}
	}
	return nil
}

// extract reads the plugins out of their layer.
func (p plugins) extract(ctx context.Context, missing Plugins) (map[string][]byte, error) {
	from, err := p.origin(ctx)
	if err != nil {
		return nil, err
	}
	defer from.Close()
	layer := from.pluginLayer(ctx, missing)
	defer layer.Close()
	files, err := missing.in(tar.NewReader(layer))
	if err != nil {
		return nil, err
	}
	if len(files) != len(missing.Files) {
		return nil, fmt.Errorf("the image that holds the CNI plugins has %d of the %d that are missing here", len(files), len(missing.Files))
	}
	return files, nil
}

// in reads those of the plugins that an archive holds.
func (p Plugins) in(archive *tar.Reader) (map[string][]byte, error) {
	files := map[string][]byte{}
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		want, ok := p.Files[path.Base(h.Name)]
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		if want != "" && digest.FromBytes(data) != want {
			return nil, fmt.Errorf("CNI plugin %s is not what its digest says", h.Name)
		}
		files[path.Base(h.Name)] = data
	}
}
