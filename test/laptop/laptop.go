// Package laptop is a user of this machine who makes other machines a cluster over SSH.
package laptop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// User is not root, and cannot use the Docker of this machine.
type User struct {
	Dir string
	// Namespace is the network namespace of the user; "" is that of this machine.
	Namespace string
}

// nobody is a user ID that owns nothing else.
const nobody = 65534

// New returns a user with a key, the program and a bundle.
func New(t *testing.T) User {
	t.Helper()
	l := User{Dir: filepath.Join(t.TempDir(), "home")}
	must.NoError(t, os.MkdirAll(filepath.Join(l.Dir, ".ssh"), 0o700))
	for dir := l.Dir; dir != os.TempDir(); dir = filepath.Dir(dir) {
		must.NoError(t, os.Chmod(dir, 0o755))
	}
	script := `cp "$1" "$2" "$3/" && ssh-keygen -q -t ed25519 -N '' -f "$3/.ssh/id_ed25519" && chown -R "$4" "$3"`
	_, err := host.Command{Args: []string{
		"sh", "-ec", script, "sh", hosts.Built.Binary, hosts.Built.Bundle, l.Dir, fmt.Sprint(nobody),
	}}.Run(t.Context())
	must.NoError(t, err)
	must.NoError(t, os.Rename(filepath.Join(l.Dir, filepath.Base(hosts.Built.Bundle)),
		filepath.Join(l.Dir, "kube.tar.zst")))
	return l
}

// In moves the user into a network namespace that is connected to nothing but the network of a host. The
// user has the address there, which has the length of the network's prefix.
func (l User) In(t *testing.T, m hosts.Machine, address string) User {
	t.Helper()
	l.Namespace = "e2e-laptop"
	hosts.Local(t, "sh", "-ec", `bridge=$(ip route get "$3" | sed -n 's/.* dev \([^ ]*\).*/\1/p')
ip netns del $1 2>/dev/null || true # of a killed test
ip netns add $1
ip link add e2e-laptop type veth peer name eth0 netns $1
ip link set e2e-laptop master $bridge up
ip -n $1 address add $2 dev eth0
ip -n $1 link set lo up
ip -n $1 link set eth0 up`, "sh", l.Namespace, address, m.IP)
	t.Cleanup(func() {
		_, err := host.Run(context.Background(), "ip", "netns", "del", l.Namespace)
		must.NoError(t, err)
	})
	return l
}

// Try runs a script as the user.
func (l User) Try(ctx context.Context, script string) (string, error) {
	args := []string{
		"setpriv", "--reuid", fmt.Sprint(nobody), "--regid", fmt.Sprint(nobody), "--clear-groups", "bash", "-ec", script,
	}
	if l.Namespace != "" {
		args = append([]string{"ip", "netns", "exec", l.Namespace}, args...)
	}
	out, err := host.Command{
		Args: args,
		Env: []string{
			"HOME=" + l.Dir, "USER=nobody", "PATH=" + l.Dir + ":" + os.Getenv("PATH"),
			"KUBE_BOOTSTRAP_CONFIG=" + l.Dir + "/lab.yaml", "KUBECONFIG=" + l.Dir + "/kubeconfig", "DOCKER_HOST=",
		},
		Dir: l.Dir,
	}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

// Sh is Try that must succeed.
func (l User) Sh(t *testing.T, script string) string {
	t.Helper()
	return hosts.Typed(t, l, script)
}

// Fails expects a command to end with an exit code, and its errors to contain each text.
func (l User) Fails(t *testing.T, script string, code int, texts ...string) {
	t.Helper()
	out, err := l.Try(t.Context(), fmt.Sprintf("(%s) >out 2>&1 || code=$?; cat out; [ \"$code\" = %d ]", script, code))
	if err != nil {
		t.Errorf("%s: %v, want exit code %d:\n%s", script, err, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("%s does not say %q:\n%s", script, text, out)
		}
	}
}

// Allow lets the user of the laptop in, as root and as a user with sudo.
func (l User) Allow(t *testing.T, m hosts.Machine) {
	t.Helper()
	key := strings.TrimSpace(string(must.Read(t, filepath.Join(l.Dir, ".ssh/id_ed25519.pub"))))
	m.Sh(t, fmt.Sprintf(`useradd -m -s /bin/bash admin && echo 'admin ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/admin
for home in /root /home/admin; do mkdir -p $home/.ssh && echo '%s' >$home/.ssh/authorized_keys; done
chown -R admin /home/admin && rm /usr/local/bin/kube-bootstrap && runuser -u admin -- sudo -n true
until ss -ltn | grep -q :22; do sleep 0.1; done`, key))
	// The first login writes files of the distribution.
	l.Sh(t, "ssh -i .ssh/id_ed25519 -o StrictHostKeyChecking=no -o UserKnownHostsFile=/dev/null root@"+m.IP+" true")
}
