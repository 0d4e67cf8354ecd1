//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/laptop"
)

// hardships are what is wrong with machines: a script on the machine, one of the user, and the problem.
var hardships = []struct{ name, ssh, machine, user, problem string }{
	{name: "first"},
	{name: "host-key", user: `sed -i "/^$IP /s|ssh-ed25519 .*|$(cut -d ' ' -f 1,2 .ssh/other.pub)|" .ssh/known_hosts`,
		problem: "host-key-changed"},
	{name: "user", ssh: ", ssh: {user: nobody-here}", problem: "ssh-keys"},
	{name: "no-key", machine: "rm /root/.ssh/authorized_keys", problem: "ssh-keys"},
	{name: "sudo", ssh: ", ssh: {user: admin}", problem: "sudo-password",
		machine: "echo 'admin:secret' | chpasswd && echo 'admin ALL=(ALL) ALL' >/etc/sudoers.d/admin"},
	{name: "full", problem: "disk-space",
		machine: "systemctl stop docker.socket docker && mount -t tmpfs -o size=1G tmpfs /var/lib && systemctl start docker"},
	// Test hosts share the clock of this machine.
	{name: "clock", problem: "clock",
		machine: `printf '#!/bin/sh\nexec /usr/bin/date -d "+3 hours" "$@"\n' >/usr/local/bin/date && chmod +x /usr/local/bin/date`},
	{name: "no-docker", problem: "docker",
		machine: "systemctl disable --now docker.socket docker && rm /usr/sbin/dockerd && rm -f /run/docker.sock"},
	{name: "member", problem: "role",
		machine: "mkdir -p /var/lib/kube-bootstrap && echo master >/var/lib/kube-bootstrap/role"},
}

// TestProblemsOfMachines: all are reported at once, and no machine is changed.
func TestProblemsOfMachines(t *testing.T) {
	l := laptop.New(t)
	var names []string
	for _, h := range hardships {
		names = append(names, "e2e-hard-"+h.name)
	}
	all := hosts.New(t, "ssh", "10.139.13.0/24", names...)
	l.Sh(t, "ssh-keygen -q -t ed25519 -N '' -f .ssh/other")
	var nodes strings.Builder
	role := "control-plane"
	for i, h := range hardships {
		m := all[i]
		l.Allow(t, m)
		l.Sh(t, "ssh-keyscan -t ed25519 "+m.IP+" >>.ssh/known_hosts 2>/dev/null; IP="+m.IP+"; "+h.user)
		if h.machine != "" {
			m.Sh(t, h.machine)
		}
		fmt.Fprintf(&nodes, "- {role: %s, name: %s, address: %s%s}\n", role, h.name, m.IP, h.ssh)
		role = "worker"
	}
	all[0].Sh(t, "ip addr add 10.139.13.200/24 dev eth0")
	l.Sh(t, "ssh-keyscan -t ed25519 10.139.13.200 >>.ssh/known_hosts 2>/dev/null")
	nodes.WriteString("- {role: worker, name: twice, address: 10.139.13.200}\n")
	writeFile(t, l, "ssh: {user: root}\nnodes:\n%s", &nodes)
	for _, m := range all {
		m.Sh(t, "touch /run/before")
	}
	want := []string{"machine twice: it has the machine-id"}
	for _, h := range hardships[1:] {
		want = append(want, "machine "+h.name+": ", "["+h.problem+"]")
	}
	l.Fails(t, "kube-bootstrap cluster up --bundle kube.tar.zst", 3, want...)
	for _, m := range all {
		if changed := m.Sh(t, changedFiles); changed != "" {
			t.Errorf("%s: changed:\n%s", m.Name, changed)
		}
	}
}

// changedFiles lists what is newer than /run/before. The system itself records logins.
const changedFiles = `find / -xdev -newer /run/before ! -path '/proc/*' ! -path '/run*' ! -path /tmp \
	! -path '/var/log/*' ! -path '/var/lib/containerd*' ! -path '/var/lib/docker*' ! -path '/var/lib/systemd*' \
	! -path '/var/lib/sudo*' ! -path '/var/lib/lastlog*' ! -path '/dev/*' ! -path /var/tmp`
