package image

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
)

// CacheDir is where downloads and builds are kept between runs.
func CacheDir() string {
	if dir := os.Getenv("KUBE_BOOTSTRAP_CACHE"); dir != "" {
		return dir
	}
	if dir, err := os.UserCacheDir(); err == nil {
		return filepath.Join(dir, "kube-bootstrap")
	}
	return "/var/cache/kube-bootstrap"
}

// key is a short name for everything that decides how a part comes out.
func key(inputs ...any) string {
	data, err := json.Marshal(inputs)
	if err != nil {
		panic(err) // plain values only
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}

// cached returns the directory of a finished part, making it if needed: build
// fills a new directory, which gets its name only once it is complete.
func cached(cache, name string, build func(dir string) error) (string, error) {
	done := filepath.Join(cache, "parts", name)
	if _, err := os.Stat(done); err == nil {
		return done, nil
	}
	if err := os.MkdirAll(filepath.Dir(done), 0o755); err != nil {
		return "", err
	}
	tmp, err := os.MkdirTemp(filepath.Dir(done), "."+name+"-*")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(tmp)
	if err := build(tmp); err != nil {
		return "", err
	}
	if err := os.Chmod(tmp, 0o755); err != nil {
		return "", err
	}
	if err := os.Rename(tmp, done); err != nil {
		// A second build may have finished first: its result is the same.
		if _, there := os.Stat(done); there != nil {
			return "", err
		}
	}
	return done, nil
}
