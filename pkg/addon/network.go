package addon

import "net/url"

// Flannel renders the manifest of flannel as a pod network in pods.
func (a Addons) Flannel() ([]byte, error) { return a.render("flannel.yaml") }

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
