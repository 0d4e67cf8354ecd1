// Package sshtest has SSH servers for tests. They run commands on this machine, forward connections,
// and have the limits of sshd.
package sshtest

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Server is an SSH server on the loopback interface.
type Server struct {
	Addr string // host:port
	Key  cryptossh.PublicKey

	answer   Answer
	mu       sync.Mutex
	open     map[net.Conn]bool
	pending  atomic.Int32
	accepted atomic.Int32
}

// Limits are settings of sshd. The zero value of a field is no limit.
type Limits struct {
	MaxStartups  int32 // connections before the login; further ones are reset
	MaxAuthTries int
}

// Answer runs a command of a client, and returns its exit code.
type Answer func(ctx context.Context, command string, channel cryptossh.Channel) (code uint32)

// Start starts a server that accepts these keys of users, until the test ends. It runs commands on this
// machine.
func Start(t *testing.T, limits Limits, users ...cryptossh.PublicKey) *Server {
	t.Helper()
	return StartScripted(t, limits, onThisMachine, users...)
}

// StartScripted is Start with other answers than those of this machine.
func StartScripted(t *testing.T, limits Limits, answer Answer, users ...cryptossh.PublicKey) *Server {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	signer, err := cryptossh.NewSignerFromKey(private)
	must.NoError(t, err)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	s := &Server{
		Addr: listener.Addr().String(), Key: signer.PublicKey(), answer: answer, open: map[net.Conn]bool{},
	}
	config := &cryptossh.ServerConfig{MaxAuthTries: limits.MaxAuthTries, PublicKeyCallback: accepts(users)}
	config.AddHostKey(signer)
	t.Cleanup(func() { _ = listener.Close(); s.Cut() })
	go s.serve(t.Context(), listener, config, limits)
	return s
}

// checkKey decides whether a user may log in with a key.
type checkKey func(cryptossh.ConnMetadata, cryptossh.PublicKey) (*cryptossh.Permissions, error)

func accepts(users []cryptossh.PublicKey) checkKey {
	return func(_ cryptossh.ConnMetadata, key cryptossh.PublicKey) (*cryptossh.Permissions, error) {
		for _, user := range users {
			if string(user.Marshal()) == string(key.Marshal()) {
				return nil, nil
			}
		}
		return nil, errors.New("unknown key")
	}
}

// Accepted is the number of TCP connections so far.
func (s *Server) Accepted() int { return int(s.accepted.Load()) }

// Open is the number of connections that are open.
func (s *Server) Open() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open)
}

// Cut ends all connections, as if the server was killed.
func (s *Server) Cut() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for conn := range s.open {
		_ = conn.Close()
	}
}

func (s *Server) serve(ctx context.Context, listener net.Listener, config *cryptossh.ServerConfig, limits Limits) {
	for {
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		s.accepted.Add(1)
		if n := s.pending.Add(1); limits.MaxStartups > 0 && n > limits.MaxStartups {
			s.pending.Add(-1)
			_ = conn.Close()
			continue
		}
		go s.handle(ctx, conn, config)
	}
}

func (s *Server) handle(ctx context.Context, conn net.Conn, config *cryptossh.ServerConfig) {
	s.mu.Lock()
	s.open[conn] = true
	s.mu.Unlock()
	defer func() {
		_ = conn.Close()
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.open, conn)
	}()
	_, channels, requests, err := cryptossh.NewServerConn(conn, config)
	s.pending.Add(-1)
	if err != nil {
		return
	}
	go accept(requests)
	for channel := range channels {
		switch channel.ChannelType() {
		case "session":
			go session(ctx, channel, s.answer)
		case "direct-tcpip":
			go forward(channel)
		default:
			_ = channel.Reject(cryptossh.UnknownChannelType, "unknown")
		}
	}
}

func accept(requests <-chan *cryptossh.Request) {
	for r := range requests {
		if r.WantReply {
			_ = r.Reply(true, nil)
		}
	}
}

func session(ctx context.Context, asked cryptossh.NewChannel, answer Answer) {
	channel, requests, err := asked.Accept()
	if err != nil {
		return
	}
	defer channel.Close()
	for r := range requests {
		var exec struct{ Command string }
		if r.Type != "exec" || cryptossh.Unmarshal(r.Payload, &exec) != nil {
			_ = r.Reply(false, nil)
			continue
		}
		_ = r.Reply(true, nil)
		status := struct{ Code uint32 }{answer(ctx, exec.Command, channel)}
		_, _ = channel.SendRequest("exit-status", false, cryptossh.Marshal(status))
		return
	}
}

// onThisMachine gives a command a pipe of the system as its input. A command that ends without having
// read its input then ends for the client too, as with sshd.
func onThisMachine(ctx context.Context, command string, channel cryptossh.Channel) uint32 {
	in, input, err := os.Pipe()
	if err != nil {
		return 1
	}
	defer in.Close()
	go func() {
		_, _ = io.Copy(input, channel)
		_ = input.Close()
	}()
	_, err = host.Command{
		Args: []string{"sh", "-c", command}, Stdin: in, Stdout: channel, Stderr: channel.Stderr(),
	}.Run(ctx)
	if code := (interface{ ExitCode() int })(nil); errors.As(err, &code) {
		return uint32(code.ExitCode())
	}
	return 0
}

func forward(asked cryptossh.NewChannel) {
	var to struct {
		Host     string
		Port     uint32
		From     string
		FromPort uint32
	}
	if err := cryptossh.Unmarshal(asked.ExtraData(), &to); err != nil {
		_ = asked.Reject(cryptossh.ConnectionFailed, err.Error())
		return
	}
	conn, err := net.Dial("tcp", net.JoinHostPort(to.Host, fmt.Sprint(to.Port)))
	if err != nil {
		_ = asked.Reject(cryptossh.ConnectionFailed, err.Error())
		return
	}
	channel, requests, err := asked.Accept()
	if err != nil {
		_ = conn.Close()
		return
	}
	go accept(requests)
	go func() {
		_, _ = io.Copy(conn, channel)
		_ = conn.Close()
	}()
	_, _ = io.Copy(channel, conn)
	_ = channel.Close()
}

// Key writes a new private key below a home directory, and returns its public key and itself.
func Key(t *testing.T, home, name, passphrase string) (cryptossh.PublicKey, ed25519.PrivateKey) {
	t.Helper()
	_, private, err := ed25519.GenerateKey(rand.Reader)
	must.NoError(t, err)
	block, err := cryptossh.MarshalPrivateKey(private, name)
	if passphrase != "" {
		block, err = cryptossh.MarshalPrivateKeyWithPassphrase(private, name, []byte(passphrase))
	}
	must.NoError(t, err)
	path := must.Write(t, filepath.Join(home, ".ssh", name), string(pem.EncodeToMemory(block)))
	must.NoError(t, os.Chmod(path, 0o600))
	signer, err := cryptossh.NewSignerFromKey(private)
	must.NoError(t, err)
	return signer.PublicKey(), private
}
