//go:build e2e

package long

import (
	"fmt"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// docker29 are settings of Docker 29 that change what kube-bootstrap finds on a host.
var docker29 = []struct{ name, settings, further string }{
	{"defaults", "{}", "true"},
	{"nftables", `{"firewall-backend": "nftables"}`, "true"},
	{"Docker's own image store", `{"features": {"containerd-snapshotter": false}}`, "true"},
	{"no forwarding", `{"ip-forward": false}`, noForwarding},
	{"nftables, no forwarding", `{"firewall-backend": "nftables", "ip-forward": false}`, noForwarding},
}

const noForwarding = "echo net.ipv4.ip_forward=0 >/etc/sysctl.d/90-no-forwarding.conf"

// TestDocker29 is for hosts with Docker 29 as its own packages install it.
func TestDocker29(t *testing.T) {
	for i, with := range docker29 {
		t.Run(with.name, func(t *testing.T) {
			made := hosts.New(t, "docker-29", fmt.Sprintf("10.138.%d.0/24", i), "e2e-docker29", "e2e-target29")
			for _, m := range made {
				m.Sh(t, fmt.Sprintf("mkdir -p /etc/docker && echo '%s' >/etc/docker/daemon.json && %s", with.settings,
					with.further))
			}
			hosts.Restart(t, made...) // Docker leaves rules of its former firewall backend until a reboot
			var before []string
			for _, m := range made {
				hosts.Soon(t, time.Minute, "Docker answers", m, "docker version")
				t.Log(m.Sh(t, versions29))
				hosts.Owned(t, m)
				before = append(before, m.World(t))
			}
			overDocker29(t, made)
			for i, m := range made {
				m.SameWorld(t, "master or worker, then turndown,", before[i])
			}
		})
	}
}

const versions29 = "docker info -f '{{.ServerVersion}} {{.Driver}} {{.DriverStatus}}'; containerd --version; " +
	"runc --version; sysctl net.ipv4.ip_forward; iptables -S FORWARD | head -n 1"

// overDocker29 makes a cluster of the hosts, looks at it, and takes it back.
func overDocker29(t *testing.T, made []hosts.Machine) {
	master, target := made[0], made[1]
	clusters.Up(t, master, target, "")
	clusters.Again(t, made...)
	traffic.Packets(t, master, made...)
	sendAfterEach(t, master, target, nil, []event{
		{"none", func(*testing.T, hosts.Machine) {}},
		{"Docker restarted", does("systemctl restart docker")},
		{"hosts rebooted", func(t *testing.T, _ hosts.Machine) { hosts.Restart(t, made...) }},
	})
	target.Sh(t, withoutTargets)
	for _, m := range made {
		m.Sh(t, clusters.Settled)
	}
	clusters.Down(t, target, master)
}

// withoutTargets takes back what startTargets does to Docker.
const withoutTargets = "docker rm -f app && docker network rm app && docker update --restart unless-stopped owner"
