//go:build e2e

package long

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/laptop"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestLogins: real SSH servers with limits and with sudo that asks for a password.
func TestLogins(t *testing.T) {
	l := laptop.New(t)
	all := hosts.New(t, "ssh", "10.139.12.0/24", "e2e-logins-gate", "e2e-logins-board")
	gate, board := all[0], all[1]
	for _, m := range all {
		l.Allow(t, m)
	}
	t.Run("twelve machines behind one host", func(t *testing.T) { behindOneHost(t, l, gate, board) })
	t.Run("an agent with eight keys", func(t *testing.T) { eightKeys(t, l, board) })
	t.Run("sudo with a password", func(t *testing.T) { sudoAsks(t, l, board) })
}

func writeFile(t *testing.T, l laptop.User, format string, args ...any) {
	t.Helper()
	const head = "apiVersion: kube-bootstrap.dev/v1alpha1\nkind: Cluster\nname: lab\n"
	must.NoError(t, os.WriteFile(filepath.Join(l.Dir, "lab.yaml"), fmt.Appendf(nil, head+format, args...), 0o644))
}

// setSSHOption sets an option of the SSH server. The result removes it.
func setSSHOption(t *testing.T, m hosts.Machine, option string) func() {
	t.Helper()
	const file = "/etc/ssh/sshd_config.d/test.conf"
	m.Sh(t, "echo '"+option+"' >"+file+" && systemctl restart ssh.service")
	return func() { m.Sh(t, "rm "+file+" && systemctl restart ssh.service") }
}

// behindOneHost: the server of the gate drops every connection above a few that have not logged in. The
// board has twelve servers, so that all their machine-ids are the same, which is a problem of each.
func behindOneHost(t *testing.T, l laptop.User, gate, board hosts.Machine) {
	defer setSSHOption(t, gate, "MaxStartups 3:50:6")()
	var nodes strings.Builder
	for i := range 12 {
		address := fmt.Sprintf("10.139.12.%d", 101+i)
		board.Sh(t, "ip addr add "+address+"/32 dev eth0 && /usr/sbin/sshd -p 2222 -o PidFile=none -o ListenAddress="+address)
		role := "worker"
		if i == 0 {
			role = "control-plane"
		}
		fmt.Fprintf(&nodes, "- {role: %s, name: n%d, address: %s}\n", role, i, address)
	}
	writeFile(t, l, "ssh: {port: 2222, user: root, acceptNewHostKeys: true, proxyJump: root@%s:22}\nnodes:\n%s", gate.IP,
		&nodes)
	accepted := "journalctl -u ssh -o cat | grep -c '^Accepted' || true"
	before := gate.Sh(t, accepted)
	var want []string
	for i := 1; i < 12; i++ {
		want = append(want, fmt.Sprintf("machine n%d: ", i))
	}
	l.Fails(t, "kube-bootstrap cluster up --bundle kube.tar.zst", 3, want...)
	l.Sh(t, "! grep -i -E 'ssh-|refused|reset' out && grep -c machine-id out")
	if got := logins(t, gate.Sh(t, accepted)) - logins(t, before); got < 1 || got > 2 {
		t.Errorf("%d connections to the gate, want one or two", got)
	}
}

func logins(t *testing.T, text string) (n int) {
	t.Helper()
	_, err := fmt.Sscan(text, &n)
	must.NoError(t, err)
	return n
}

// eightKeys: the server ends the connection after six keys.
func eightKeys(t *testing.T, l laptop.User, board hosts.Machine) {
	defer setSSHOption(t, board, "MaxAuthTries 6")()
	const agent = `export SSH_AUTH_SOCK=$PWD/agent; [ -S agent ] || { mkdir -p keys
ssh-agent -a agent >agent.pid; mv .ssh/id_ed25519 .ssh/id_ed25519.pub keys/
for i in 1 2 3 4 5 6 7; do ssh-keygen -q -t ed25519 -N '' -C "key $i" -f keys/$i; ssh-add -q keys/$i; done
ssh-add -q keys/id_ed25519; }
`
	defer l.Sh(t, `. ./agent.pid >/dev/null; kill $SSH_AGENT_PID; mv keys/id_ed25519* .ssh/`)
	const nodes = "ssh: {user: root, acceptNewHostKeys: true%s}\nnodes:\n" +
		"- {role: control-plane, name: a, address: %s}\n"
	writeFile(t, l, nodes, "", board.IP)
	l.Fails(t, agent+"kube-bootstrap node inspect a", 3, "key 1", "key 5")
	writeFile(t, l, nodes, ", identityFile: ~/keys/id_ed25519", board.IP)
	if out := l.Sh(t, agent+"kube-bootstrap node inspect a"); !strings.Contains(out, board.IP) {
		t.Errorf("it does not say %s:\n%s", board.IP, out)
	}
}

// sudoAsks: the password is asked for on a terminal only, and is in no list of processes.
func sudoAsks(t *testing.T, l laptop.User, board hosts.Machine) {
	board.Sh(t, `echo 'admin:pass word' | chpasswd && echo 'admin ALL=(ALL) ALL' >/etc/sudoers.d/admin`)
	writeFile(t, l, "ssh: {user: admin, acceptNewHostKeys: true}\nnodes:\n- {role: control-plane, name: a, address: %s}\n",
		board.IP)
	l.Fails(t, "kube-bootstrap node inspect a", 3, "machine a: sudo of user admin", "NOPASSWD")
	typed := func(password string) string {
		return "(sleep 3; echo '" + password + "'; sleep 5) | script -qec 'kube-bootstrap node ssh a -- ps -eo args' /dev/null"
	}
	out := l.Sh(t, typed("pass word"))
	if !strings.Contains(out, "Password of admin for sudo") || !strings.Contains(out, "dockerd") {
		t.Errorf("no processes:\n%s", out)
	}
	if _, processes, _ := strings.Cut(out, "COMMAND"); strings.Contains(processes, "pass word") {
		t.Errorf("the password is shown:\n%s", out)
	}
	l.Fails(t, typed("wrong"), 3, "sudo refuses user admin")
}
