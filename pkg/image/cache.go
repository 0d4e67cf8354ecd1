package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// CacheDir returns the directory for downloads and builds.
func CacheDir() string {
	if dir := os.Getenv("KUBE_BOOTSTRAP_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "kube-bootstrap")
	}
	return "/var/cache/kube-bootstrap"
}

// key returns a short hash of the inputs of a part.
func key(inputs ...any) string {
	data, err := json.Marshal(inputs)
	if err != nil {
		panic(err) // plain values only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// Cached returns the directory of a part. If it does not exist, build fills a
// temporary directory, which is renamed when it is complete. A concurrent
// process waits instead of building the same part.
func Cached(ctx context.Context, cache, name string, build func(dir string) error) (string, error) {
	done := filepath.Join(cache, "parts", name)
	if _, err := os.Stat(done); err == nil {
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
	if _, err := os.Stat(done); err == nil {
		return done, nil
	}
	return done, inOneMove(done, build)
}

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
