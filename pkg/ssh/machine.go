package ssh

import (
	"context"
	"io"
	"net"
	"sync"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
)

// mostSessions is the number of commands that one connection runs at the same time. sshd allows ten
// (MaxSessions), and a signal to a command needs one more.
const mostSessions = 8

// Machine is the access to one machine. It connects for the first command, and again after the
// connection was lost, such as by a restart of the machine.
type Machine struct {
	network   *Network
	target    target
	acceptNew bool
	slots     chan struct{}

	mu     sync.Mutex
	client *cryptossh.Client
	become become
}

// Connect connects to the machine and finds out how commands run as root.
func (m *Machine) Connect(ctx context.Context) error {
	_, _, err := m.connection(ctx)
	return err
}

// Dial opens a TCP connection from the machine.
func (m *Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	client, _, err := m.connection(ctx)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, network, address)
}

// Close ends the connection.
func (m *Machine) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == nil {
		return nil
	}
	err := m.client.Close()
	m.client = nil
	if err != nil && lost(err) {
		return nil
	}
	return err
}

// connection returns the connection, and how commands run as root.
func (m *Machine) connection(ctx context.Context) (*cryptossh.Client, become, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		return m.client, m.become, nil
	}
	client, how, err := m.open(ctx)
	if err != nil && early(err) { // a machine under load may also end a connection that it has accepted
		client, how, err = m.open(ctx)
	}
	if err != nil {
		return nil, become{}, err
	}
	m.client, m.become = client, how
	go m.watch(client)
	return client, how, nil
}

func (m *Machine) open(ctx context.Context) (*cryptossh.Client, become, error) {
	client, err := m.network.connect(ctx, m.target, m.acceptNew)
	if err != nil {
		return nil, become{}, err
	}
	how, err := m.network.sudo.find(ctx, m.target, client)
	if err != nil {
		_ = client.Close()
		return nil, become{}, err
	}
	return client, how, nil
}

// watch forgets a connection that was lost.
func (m *Machine) watch(client *cryptossh.Client) {
	_ = client.Wait()
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == client {
		m.client = nil
	}
}

// pausing is a signer that may ask the user for a passphrase. Meanwhile the limit of the connection
// does not run.
type pausing struct {
	cryptossh.Signer
	limit *time.Timer
}

func (p pausing) Sign(random io.Reader, data []byte) (*cryptossh.Signature, error) {
	return p.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm makes RSA keys work, whose usual algorithm servers refuse.
func (p pausing) SignWithAlgorithm(random io.Reader, data []byte, algorithm string) (*cryptossh.Signature, error) {
	p.limit.Stop()
	defer p.limit.Reset(connectLimit)
	if able, ok := p.Signer.(cryptossh.AlgorithmSigner); ok && algorithm != "" {
		return able.SignWithAlgorithm(random, data, algorithm)
	}
	return p.Signer.Sign(random, data)
}
