package maindocker

import (
	"context"
)

// NeedsNetfilter reports whether Docker needs bridged packets to pass the
// firewall: to isolate containers of one network, or to forward published
// ports without a proxy. It returns true if Docker does not answer.
func (b Bridge) NeedsNetfilter(ctx context.Context) bool {
	owner, err := readSettings(b.Files, daemonJSON)
	if err != nil || owner["icc"] == false || owner["userland-proxy"] == false {
		return true
	}
	docker, err := b.Docker()
	if err != nil {
		return true
	}
	networks, err := docker.Networks(ctx)
	if err != nil {
		return true
	}
	for _, n := range networks {
		if n.Options["com.docker.network.bridge.enable_icc"] == "false" {
			return true
		}
	}
	return false
}
