package registry

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// writtenPath is the file that lists the files that ConfigureHost wrote.
const writtenPath = host.StateDir + "/registry-files.json"

// The names of the certificate files of a registry, in a directory of its own.
const (
	CAFile   = "ca.crt"
	CertFile = "client.cert"
	KeyFile  = "client.key"
)

// CertificateFiles returns the files with the certificates for a program that reads them in dir.
func (r *Registry) CertificateFiles(dir string) (files []host.File) {
	if len(r.CA) > 0 {
		files = append(files, host.File{Path: path.Join(dir, CAFile), Data: r.CA, Mode: 0o644})
	}
	if len(r.Cert) > 0 {
		files = append(files, host.File{Path: path.Join(dir, CertFile), Data: r.Cert, Mode: 0o644},
			host.File{Path: path.Join(dir, KeyFile), Data: r.Key})
	}
	return files
}

// writtenNames are the base names of these files.
var writtenNames = []string{"hosts.toml", CAFile, CertFile, KeyFile, "config.json"}

var writtenRecord = host.Record[[]string]{Path: writtenPath, Valid: func(paths []string) error {
	for _, p := range paths {
		if !path.IsAbs(p) || !slices.Contains(writtenNames, path.Base(p)) {
			return fmt.Errorf("%q is not a file of a registry", p)
		}
	}
	return nil
}}

// ConfigureHost is the step that writes the wanted files of Docker and containerd, and restores
// the original of a file that is no longer wanted. Undo restores all originals.
func ConfigureHost(files host.Files, wanted func() ([]host.File, error)) step.Step {
	h := hostFiles{files, wanted}
	return step.Step{
		ID: "registry-files", Name: "configure Docker and containerd for the registry", Check: h.check,
		Apply: h.apply, Undo: h.undo,
	}
}

type hostFiles struct {
	files  host.Files
	wanted func() ([]host.File, error)
}

func (h hostFiles) check(context.Context) (diff step.Diff, err error) {
	tree, err := h.wanted()
	if err != nil {
		return nil, err
	}
	for _, f := range tree {
		missing, missingErr := h.missing(f)
		diff, err = append(diff, missing...), errors.Join(err, missingErr)
	}
	old, oldErr := h.outdated(tree)
	for _, path := range old {
		diff = append(diff, "restore "+path)
	}
	records, recordsErr := h.recordDiff()
	return append(diff, records...), errors.Join(err, oldErr, recordsErr)
}

// written returns the files that ConfigureHost wrote; without the record, the files with such a name.
func (h hostFiles) written() ([]string, error) {
	paths, err := writtenRecord.Read(h.files)
	if !host.Lost(err) {
		return paths, err
	}
	return slices.DeleteFunc(host.ReplacedFiles(h.files),
		func(p string) bool { return !slices.Contains(writtenNames, path.Base(p)) }), nil
}

// recordDiff reports a damaged record or original, if there are such files.
func (h hostFiles) recordDiff() (step.Diff, error) {
	paths, err := h.written()
	if err != nil || len(paths) == 0 && !h.files.Exists(writtenPath) {
		return nil, err
	}
	diff, err := writtenRecord.Diff(h.files)
	for _, p := range paths {
		original, originalErr := h.files.UserFile(p).Diff()
		diff, err = append(diff, original...), errors.Join(err, originalErr)
	}
	return diff, err
}

func (h hostFiles) outdated(tree []host.File) ([]string, error) {
	paths, err := h.written()
	return slices.DeleteFunc(paths, func(path string) bool {
		return slices.ContainsFunc(tree, func(f host.File) bool { return f.Path == path })
	}), err
}

func (h hostFiles) apply(ctx context.Context) error {
	tree, err := h.wanted()
	if err != nil {
		return err
	}
	old, err := h.outdated(tree)
	if err != nil {
		return err
	}
	var paths []string
	for _, f := range tree {
		paths = append(paths, f.Path)
	}
	if err := h.remember(slices.Concat(old, paths)); err != nil {
		return err
	}
	for _, f := range tree {
		if err := h.replace(f); err != nil {
			return err
		}
	}
	if err := h.restore(ctx, old); err != nil {
		return err
	}
	return h.remember(paths)
}

func (h hostFiles) replace(f host.File) error {
	diff, err := h.missing(f)
	if err != nil {
		return err
	}
	record, err := h.files.UserFile(f.Path).Diff()
	if err != nil || len(diff)+len(record) == 0 {
		return err
	}
	return h.files.UserFile(f.Path).Replace(f.Data, modeOf(f))
}

func (h hostFiles) missing(f host.File) ([]string, error) {
	return h.files.UserFile(f.Path).Missing(f.Data, modeOf(f))
}

func modeOf(f host.File) fs.FileMode { return cmp.Or(f.Mode, 0o600) }

func (h hostFiles) remember(paths []string) error {
	if len(paths) == 0 {
		return h.files.Remove(writtenPath)
	}
	return writtenRecord.Write(h.files, paths)
}

func (h hostFiles) restore(ctx context.Context, paths []string) error {
	return host.Each(paths, func(path string) error { return h.files.UserFile(path).PutBack(ctx) })
}

func (h hostFiles) undo(ctx context.Context) error {
	paths, err := h.written()
	if err != nil {
		return err
	}
	if err := h.restore(ctx, paths); err != nil {
		return err
	}
	return h.files.Remove(writtenPath)
}
