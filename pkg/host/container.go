package host

import (
	"bytes"
	"os"
)

// InContainer reports whether this machine is itself a container, by the
// marks of Docker and systemd.
func InContainer() bool {
	if _, err := os.Stat("/.dockerenv"); err == nil {
		return true
	}
	env, err := os.ReadFile("/proc/1/environ")
	return err == nil && bytes.Contains(env, []byte("container="))
}
