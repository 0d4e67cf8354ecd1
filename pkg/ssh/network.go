// Package ssh connects to machines over SSH as OpenSSH does: with ~/.ssh/config, the agent and
// known_hosts, through any number of hops. It runs commands there as root.
//
//	Network -> hop -> hop -> Machine        one connection per hop, shared, and one per machine
//
// Files go through commands and not through SFTP: sudo changes the user of a command, and of nothing
// else, and a command can continue a file and compare a digest.
package ssh

import (
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Questions are asked on a terminal, one at a time.
type Questions interface {
	// Confirm asks a question that is answered by yes or no.
	Confirm(ctx context.Context, question string) (bool, error)
	// Secret asks for a text that the terminal does not show.
	Secret(ctx context.Context, prompt string) (string, error)
}

// Network holds the connections of one command. All machines share the connections to hops.
type Network struct {
	files    files
	keys     *keyring
	hostKeys *hostKeys
	sudo     *sudoPassword

	mu   sync.Mutex
	hops map[string]*sharedHop
}

// sharedHop is a connection to a hop, which several machines may wait for.
type sharedHop struct {
	once   sync.Once
	client *cryptossh.Client
	err    error
}

// New reads the files of OpenSSH in a home directory. It connects to nothing yet. Without a terminal,
// ask is nil.
func New(home string, ask Questions) (*Network, error) {
	found, err := readFiles(home)
	if err != nil {
		return nil, err
	}
	known, err := readHostKeys(home, ask)
	if err != nil {
		return nil, err
	}
	return &Network{
		files: found, keys: newKeyring(ask), hostKeys: known, sudo: &sudoPassword{ask: ask},
		hops: map[string]*sharedHop{},
	}, nil
}

// Close ends the connections to the hops, and so those to machines behind them.
func (n *Network) Close() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, hop := range n.hops {
		if hop.client != nil {
			_ = hop.client.Close()
		}
	}
	clear(n.hops)
	n.keys.close()
	return nil
}

// dialer opens a connection to an address: from this machine or from a hop.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// connect connects to a server through all hops to it.
func (n *Network) connect(ctx context.Context, t target, acceptNew bool) (*cryptossh.Client, error) {
	dial, via, err := n.through(ctx, t, acceptNew, 0)
	if err != nil {
		return nil, err
	}
	return n.open(ctx, t, dial, via, acceptNew)
}

// mostHops is more than any way has. It ends a circle of ProxyJump.
const mostHops = 8

// through connects to the hops of a server, and returns the dialer of the last one.
func (n *Network) through(ctx context.Context, t target, acceptNew bool, depth int) (dialer, []string, error) {
	dial, via := dialer((&net.Dialer{}).DialContext), []string(nil)
	if depth > mostHops {
		return nil, nil, &step.Problem{Name: "ssh-config", Text: "machine " + t.name + ": the hops form a circle",
			Remedy: "correct ProxyJump in ~/.ssh/config", Firm: true}
	}
	for i, text := range t.jumps {
		hop, err := n.files.hop(text, i == 0)
		if err != nil {
			return nil, nil, err
		}
		hop.name = t.name
		if i == 0 {
			if dial, via, err = n.through(ctx, hop, acceptNew, depth+1); err != nil {
				return nil, nil, err
			}
		}
		client, err := n.hop(ctx, hop, dial, via, acceptNew)
		if err != nil {
			return nil, nil, err
		}
		dial, via = client.DialContext, append(slices.Clone(via), hop.address())
	}
	return dial, via, nil
}

// hop returns the connection to a hop. A connection that was lost is opened again.
func (n *Network) hop(
	ctx context.Context, t target, dial dialer, via []string, acceptNew bool,
) (*cryptossh.Client, error) {
	key := route(t, via)
	n.mu.Lock()
	one := n.hops[key]
	if one == nil {
		one = &sharedHop{}
		n.hops[key] = one
	}
	n.mu.Unlock()
	one.once.Do(func() {
		if one.client, one.err = n.open(ctx, t, dial, via, acceptNew); one.err == nil {
			go n.watch(key, one.client)
		}
	})
	return one.client, atHop(one.err, t)
}

// watch drops a hop when its connection ends.
func (n *Network) watch(key string, client *cryptossh.Client) {
	_ = client.Wait()
	n.mu.Lock()
	defer n.mu.Unlock()
	if one := n.hops[key]; one != nil && one.client == client {
		delete(n.hops, key)
	}
}

// connectLimit is the time for one connection, without questions to the user.
const connectLimit = 15 * time.Second

// open connects to one server. A server that ends the connection before it has sent its version is
// asked again: sshd does so if too many others connect at the same time (MaxStartups).
func (n *Network) open(
	ctx context.Context, t target, dial dialer, via []string, acceptNew bool,
) (*cryptossh.Client, error) {
	const attempts, pause = 4, 300 * time.Millisecond
	var err error
	for i := range attempts {
		var client *cryptossh.Client
		if client, err = n.openOnce(ctx, t, dial, acceptNew); err == nil {
			return client, nil
		}
		if !early(err) || step.Pause(ctx, pause<<i) != nil {
			break
		}
	}
	return nil, explain(ctx, t, via, n.keys.keys(ctx, t), err)
}

// early reports whether a server ended the connection during the handshake.
func early(err error) bool {
	return errors.Is(err, io.EOF) || strings.Contains(err.Error(), "EOF") ||
		strings.Contains(err.Error(), "connection reset by peer")
}

func (n *Network) openOnce(ctx context.Context, t target, dial dialer, acceptNew bool) (*cryptossh.Client, error) {
	limited, cancel := step.Limited(step.WithLimit(ctx, connectLimit))
	defer cancel()
	dialled, err := dial(limited, "tcp", t.address())
	if err != nil {
		return nil, &dialError{err}
	}
	conn := heard(dialled)
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	timer := time.AfterFunc(connectLimit, func() { _ = conn.Close() })
	defer timer.Stop()
	checkKey := n.hostKeys.check(ctx, t, acceptNew)
	client, channels, requests, err := cryptossh.NewClientConn(conn, t.address(), &cryptossh.ClientConfig{
		User: t.user, HostKeyAlgorithms: n.hostKeys.algorithms(t),
		HostKeyCallback: func(name string, remote net.Addr, key cryptossh.PublicKey) error {
			timer.Stop() // the user may be asked
			err := checkKey(name, remote, key)
			timer.Reset(connectLimit)
			return err
		},
		Auth: []cryptossh.AuthMethod{cryptossh.PublicKeysCallback(func() (signers []cryptossh.Signer, _ error) {
			for _, k := range n.keys.keys(ctx, t) {
				signers = append(signers, pausing{k.Signer, timer})
			}
			return signers, nil
		})},
	})
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	opened := cryptossh.NewClient(client, channels, requests)
	go keepAlive(opened, conn, aliveEvery, aliveLimit)
	return opened, nil
}

// Machine returns the access to a machine. It does not connect yet.
func (n *Network) Machine(name, address string, s connection.SSH) (*Machine, error) {
	t, err := n.files.target(name, address, s)
	if err != nil {
		return nil, err
	}
	return &Machine{
		network: n, target: t, acceptNew: s.AcceptNewHostKeys, slots: make(chan struct{}, mostSessions),
	}, nil
}
