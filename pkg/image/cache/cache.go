// Package cache keeps the parts that images are made of: what was downloaded,
// compiled or packed, under a key of its inputs.
package cache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"

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
// temporary directory, which is renamed when it is complete. A concurrent
// process waits instead of building the same part.
func Get(ctx context.Context, cache, name string, build func(dir string) error) (string, error) {
	done := partDir(cache, name)
	if Has(cache, name) {
		return done, nil
	}
	if err := os.MkdirAll(filepath.Dir(done), 0o755); err != nil {
		return "", err
	}
	release, err := host.WaitLock(ctx, filepath.Join(filepath.Dir(done), "."+name+".lock"), name)
	if err != nil {
		return "", err
	}
	defer release()
	if Has(cache, name) {
		return done, nil
	}
	return done, inOneMove(done, build)
}

// Has reports whether the cache contains a part.
func Has(cache, name string) bool {
	_, err := os.Stat(partDir(cache, name))
	return err == nil
}

func partDir(cache, name string) string { return filepath.Join(cache, "parts", name) }

// inOneMove is called with a lock: an existing temporary directory is from a
// killed run.
func inOneMove(done string, build func(dir string) error) error {
	tmp := filepath.Join(filepath.Dir(done), "."+filepath.Base(done)+".half")
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	if err := os.Mkdir(tmp, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := build(tmp); err != nil {
		return err
	}
	return os.Rename(tmp, done)
}

// Save writes a file of a part.
func Save(path string, content io.Reader) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, content); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
