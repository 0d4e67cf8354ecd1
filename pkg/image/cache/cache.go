// Package cache stores the parts of images: what was downloaded,
// compiled or packed, under a key of its inputs.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Part is a component of an image, with its origin.
type Part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	Origin  string `json:"origin"` // "k8s.io/kubernetes@v1.36.3"
	How     string `json:"how"`    // the command, or the list of packages
	Dir     string `json:"-"`      // directory of its files
	Key     string `json:"key"`    // changes with every input

	// Sources lists modules with their checksums, or packages with their
	// versions.
	Sources []string `json:"sources,omitempty"`
}

// Dir returns the directory for downloads and builds.
func Dir() string {
	if dir := os.Getenv("KUBE_BOOTSTRAP_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "kube-bootstrap")
	}
	return "/var/cache/kube-bootstrap"
}

// Key returns a short hash of the inputs of a part.
func Key(inputs ...any) string {
	data, err := json.Marshal(inputs)
	if err != nil {
		panic(err) // plain values only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Get returns the directory of a part. If it does not exist, build fills a
// temporary directory, which is renamed when it is complete on the disk. A concurrent
// process waits instead of building the same part.
func Get(ctx context.Context, cache, name string, build func(dir string) error) (string, error) {
	done := partDir(cache, name)
	if Has(cache, name) {
		return done, nil
	}
	return done, InTemporary(ctx, done, name, func(tmp string) error {
		if Has(cache, name) {
			return nil
		}
		if err := build(tmp); err != nil {
			return err
		}
		if err := syncTree(tmp); err != nil {
			return err
		}
		return os.Rename(tmp, done)
	})
}

// syncTree writes a directory to the disk: after a power failure, the files of a renamed part
// could be empty or truncated, and nothing would notice. It does not sync the whole file
// system, to which Docker may be writing.
func syncTree(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() && !entry.Type().IsRegular() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(file.Sync(), file.Close())
	})
}

// InTemporary calls do with an empty directory in the parent of path, in which do creates what it
// then renames to path. A concurrent process with the same path waits.
func InTemporary(ctx context.Context, path, what string, do func(tmp string) error) error {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	release, err := host.WaitLock(ctx, filepath.Join(dir, "."+name+".lock"), what)
	if err != nil {
		return err
	}
	defer release()
	// The lock is held: an existing temporary directory is from a killed run.
	tmp := filepath.Join(dir, "."+name+".half")
	if err := errors.Join(os.RemoveAll(tmp), os.Mkdir(tmp, 0o755)); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	return do(tmp)
}

// Has reports whether the cache contains a part.
func Has(cache, name string) bool {
	_, err := os.Stat(partDir(cache, name))
	return err == nil
}

func partDir(cache, name string) string { return filepath.Join(cache, "parts", name) }

// WriteDuration records how long it took to build the part of this name.
func WriteDuration(cache, name string, took time.Duration) error {
	path := durationFile(cache, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return host.WriteFile(path, []byte(took.String()), 0o644)
}

// Duration returns the last record of WriteDuration.
func Duration(cache, name string) (time.Duration, error) {
	text, err := os.ReadFile(durationFile(cache, name))
	if err != nil {
		return 0, err
	}
	return time.ParseDuration(string(text))
}

func durationFile(cache, name string) string { return filepath.Join(cache, "durations", name) }

// Save writes a file of a part.
func Save(path string, content io.Reader) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content)
	return errors.Join(err, file.Close())
}
