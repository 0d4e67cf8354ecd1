package addon

import (
	"bytes"
	"fmt"
	"net/url"
)

// Flannel renders the manifest of flannel as a pod network in pods.
func (a Addons) Flannel() ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, "flannel.yaml", a.withDefaults()); err != nil {
		return nil, fmt.Errorf("render flannel.yaml: %w", err)
	}
	return out.Bytes(), nil
}

// ServerHost returns the host of Server.
func (s Settings) ServerHost() (string, error) {
	u, err := url.Parse(s.Server)
	return u.Hostname(), err
}

// ServerPort is the port of Server.
func (s Settings) ServerPort() (string, error) {
	u, err := url.Parse(s.Server)
	return u.Port(), err
}
