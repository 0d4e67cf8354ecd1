package cache

import (
	"os"
	"path/filepath"
	"time"
)

// WriteDuration records how long it took to make what name names.
func WriteDuration(cache, name string, took time.Duration) error {
	path := durationFile(cache, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	half := path + ".half"
	if err := os.WriteFile(half, []byte(took.String()), 0o644); err != nil {
		return err
	}
	return os.Rename(half, path)
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
