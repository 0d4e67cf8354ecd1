package ssh

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh/sshtest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// settings return the settings of a machine behind a server, which accepts new host keys.
func settings(t *testing.T, s *sshtest.Server, via ...*sshtest.Server) (address string, c connection.SSH) {
	t.Helper()
	address, port, err := net.SplitHostPort(s.Addr)
	must.NoError(t, err)
	c = connection.SSH{User: "root", AcceptNewHostKeys: true}
	c.Port, err = strconv.Atoi(port)
	must.NoError(t, err)
	var hops []string
	for _, v := range via {
		hops = append(hops, "root@"+v.Addr)
	}
	c.ProxyJump = strings.Join(hops, ",")
	return address, c
}

func network(t *testing.T, home string, ask Questions) *Network {
	t.Helper()
	t.Setenv("SSH_AUTH_SOCK", "")
	n, err := New(home, ask)
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, n.Close()) })
	return n
}

func machine(t *testing.T, n *Network, s *sshtest.Server, via ...*sshtest.Server) *Machine {
	t.Helper()
	address, c := settings(t, s, via...)
	m, err := n.Machine("board", address, c)
	must.NoError(t, err)
	t.Cleanup(func() { _ = m.Close() })
	return m
}

func says(t *testing.T, m *Machine) error {
	t.Helper()
	var out bytes.Buffer
	err := m.Exec(t.Context(), host.Command{Args: []string{"echo", "it's me"}, Stdout: &out})
	if err == nil && out.String() != "it's me\n" {
		t.Errorf("output %q", out.String())
	}
	return err
}

// problem returns the name of the one problem of an error.
func problem(err error) string {
	found := step.Problems(err)
	if len(found) != 1 {
		return fmt.Sprint(err)
	}
	return found[0].Name
}

// TestAllMachinesShareTheConnectionsToHops: the last hop resets connections beyond the third that has
// not logged in, as sshd does with MaxStartups.
func TestAllMachinesShareTheConnectionsToHops(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "id_ed25519", "")
	first, second := sshtest.Start(t, sshtest.Limits{}, user), sshtest.Start(t, sshtest.Limits{MaxStartups: 3}, user)
	n := network(t, home, nil)
	var all sync.WaitGroup
	for range 12 {
		m := machine(t, n, sshtest.Start(t, sshtest.Limits{}, user), first, second)
		all.Go(func() {
			if err := says(t, m); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if first.Accepted() != 1 || second.Accepted() != 1 {
		t.Errorf("%d and %d connections to the hops", first.Accepted(), second.Accepted())
	}
}

// agentWith starts an agent with new keys, and returns its socket.
func agentWith(t *testing.T, keys int) string {
	t.Helper()
	ring := agent.NewKeyring()
	for i := range keys {
		_, private := sshtest.Key(t, t.TempDir(), "key", "")
		must.NoError(t, ring.Add(agent.AddedKey{PrivateKey: &private, Comment: fmt.Sprintf("key %d", i+1)}))
	}
	socket := filepath.Join(t.TempDir(), "agent")
	listener, err := net.Listen("unix", socket)
	must.NoError(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = agent.ServeAgent(ring, conn) }()
		}
	}()
	return socket
}

// TestAnAgentWithManyKeysEndsNoLogin: sshd ends a connection after six keys.
func TestAnAgentWithManyKeysEndsNoLogin(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "lab", "")
	server := sshtest.Start(t, sshtest.Limits{MaxAuthTries: 6}, user)
	n := network(t, home, nil)
	t.Setenv("SSH_AUTH_SOCK", agentWith(t, 8))
	address, c := settings(t, server)
	without, err := n.Machine("board", address, c)
	must.NoError(t, err)
	err = says(t, without)
	if problem(err) != "ssh-keys" || !strings.Contains(err.Error(), "key 5 of the agent") ||
		strings.Contains(err.Error(), "key 6") {
		t.Errorf("without a named key: %v", err)
	}
	c.IdentityFile = "~/.ssh/lab"
	with, err := n.Machine("board", address, c)
	must.NoError(t, err)
	defer with.Close()
	must.NoError(t, says(t, with))
}

// answers are the answers of a user.
type answers struct {
	yes    bool
	secret string
	asked  []string
}

func (a *answers) Confirm(_ context.Context, question string) (bool, error) {
	a.asked = append(a.asked, question)
	return a.yes, nil
}

func (a *answers) Secret(_ context.Context, prompt string) (string, error) {
	a.asked = append(a.asked, prompt)
	return a.secret, nil
}

func TestAPassphraseIsAskedForOnce(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "id_ed25519", "open sesame")
	ask := &answers{secret: "open sesame"}
	n := network(t, home, ask)
	for range 2 {
		must.NoError(t, says(t, machine(t, n, sshtest.Start(t, sshtest.Limits{}, user))))
	}
	if len(ask.asked) != 1 || !strings.Contains(ask.asked[0], "id_ed25519") {
		t.Errorf("asked %q", ask.asked)
	}
	err := says(t, machine(t, network(t, home, nil), sshtest.Start(t, sshtest.Limits{}, user)))
	if err == nil || !strings.Contains(err.Error(), "passphrase") {
		t.Errorf("without a terminal: %v", err)
	}
}

func TestHostKeys(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "id_ed25519", "")
	server := sshtest.Start(t, sshtest.Limits{}, user)
	address, c := settings(t, server)
	connect := func(ask Questions, acceptNew bool) error {
		n := network(t, home, ask)
		c.AcceptNewHostKeys = acceptNew
		m, err := n.Machine("board", address, c)
		must.NoError(t, err)
		defer m.Close()
		return says(t, m)
	}
	if got := problem(connect(nil, false)); got != "host-key-unknown" {
		t.Errorf("an unknown key without a terminal: %s", got)
	}
	no := &answers{}
	if got := problem(connect(no, false)); got != "host-key-unknown" || len(no.asked) != 1 ||
		!strings.Contains(no.asked[0], cryptossh.FingerprintSHA256(server.Key)) {
		t.Errorf("an unknown key that the user refuses: %s, asked %q", got, no.asked)
	}
	must.NoError(t, connect(&answers{yes: true}, false))
	must.NoError(t, connect(nil, false)) // known_hosts has the key now
	other := sshtest.Start(t, sshtest.Limits{}, user)
	line := "[" + strings.Replace(server.Addr, ":", "]:", 1) + " " + string(cryptossh.MarshalAuthorizedKey(other.Key))
	must.Write(t, filepath.Join(home, ".ssh/known_hosts"), line)
	if got := problem(connect(&answers{yes: true}, true)); got != "host-key-changed" {
		t.Errorf("a changed key: %s", got)
	}
}

func TestALostConnectionIsOpenedAgain(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "id_ed25519", "")
	hop, server := sshtest.Start(t, sshtest.Limits{}, user), sshtest.Start(t, sshtest.Limits{}, user)
	m := machine(t, network(t, home, nil), server, hop)
	for _, cut := range []*sshtest.Server{server, hop} {
		must.NoError(t, says(t, m))
		ended := make(chan error)
		begun, begins := net.Pipe()
		go func() {
			args := []string{"sh", "-c", "echo begun; sleep 20"}
			ended <- m.Exec(t.Context(), host.Command{Args: args, Stdout: begins})
		}()
		_, err := begun.Read(make([]byte, 8))
		must.NoError(t, err)
		cut.Cut()
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "machine board: the connection to") {
			t.Errorf("a command while the connection is cut: %v", err)
		}
		must.Until(t, "the machine answers again", func() bool { return says(t, m) == nil })
	}
}

func TestErrorsOfConnections(t *testing.T) {
	home := t.TempDir()
	user, _ := sshtest.Key(t, home, "id_ed25519", "")
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	nothing := &sshtest.Server{Addr: gone.Addr().String()}
	must.NoError(t, gone.Close())
	hop := sshtest.Start(t, sshtest.Limits{}, user)
	stranger := sshtest.Start(t, sshtest.Limits{})
	n := network(t, home, nil)
	for _, c := range []struct {
		m          *Machine
		want, text string
	}{
		{machine(t, n, nothing), "ssh-refused", "start the SSH server"},
		{machine(t, n, nothing, hop), "ssh-refused", "through " + hop.Addr},
		{machine(t, n, hop, nothing), "ssh-refused", "hop 127.0.0.1"},
		{machine(t, n, hop, stranger), "ssh-keys", "hop 127.0.0.1"},
		{machine(t, n, stranger), "ssh-keys", filepath.Join(home, ".ssh/id_ed25519")},
	} {
		if err := says(t, c.m); problem(err) != c.want || !strings.Contains(err.Error(), c.text) {
			t.Errorf("got %v, want %s with %q", err, c.want, c.text)
		}
	}
}

func TestTheConfigurationOfOpenSSH(t *testing.T) {
	home := t.TempDir()
	must.Write(t, filepath.Join(home, ".ssh/config"), `Host board
	HostName 192.0.2.7
	Port 2222
	User admin
	IdentityFile ~/.ssh/%r
	ProxyJump gate,inner:2200
	HostKeyAlias lab-board
Host gate
	ProxyJump outer
Host *
	IdentitiesOnly yes
`)
	f, err := readFiles(home)
	must.NoError(t, err)
	got, err := f.target("b", "board", connection.SSH{})
	must.NoError(t, err)
	if got.address() != "192.0.2.7:2222" || got.user != "admin" || got.keyFiles[0] != home+"/.ssh/admin" ||
		!got.onlyFiles || got.knownAs() != "lab-board:22" || strings.Join(got.jumps, " ") != "gate inner:2200" {
		t.Errorf("%+v", got)
	}
	given := connection.SSH{User: "root", Port: 22, ProxyJump: "none", IdentityFile: "~/key"}
	over, err := f.target("b", "board", given)
	must.NoError(t, err)
	if over.address() != "192.0.2.7:22" || over.user != "root" || over.keyFiles[0] != home+"/key" || over.jumps != nil {
		t.Errorf("the settings have precedence: %+v", over)
	}
	gate, err := f.hop("gate", true)
	must.NoError(t, err)
	inner, err := f.hop("inner:2200", false)
	must.NoError(t, err)
	if strings.Join(gate.jumps, "") != "outer" || inner.address() != "inner:2200" || inner.jumps != nil {
		t.Errorf("hops %+v, %+v", gate, inner)
	}
}
