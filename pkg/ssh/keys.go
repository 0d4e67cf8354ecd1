package ssh

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"sync"

	cryptossh "golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// mostKeys is the number of keys that are offered to a server. sshd ends the connection after six
// attempts (MaxAuthTries), and other settings may allow fewer.
const mostKeys = 5

// key is a key to offer.
type key struct {
	name string // for people: a path, or "NAME of the agent"
	cryptossh.Signer
}

// keyring finds the keys of the user.
type keyring struct {
	ask Questions

	mu      sync.Mutex
	agents  map[string][]key // by their sockets
	closers []io.Closer
	opened  map[string]*lockedKey // by their paths
}

func newKeyring(ask Questions) *keyring {
	return &keyring{ask: ask, agents: map[string][]key{}, opened: map[string]*lockedKey{}}
}

func (k *keyring) close() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, c := range k.closers {
		_ = c.Close()
	}
}

// keys returns the keys for a server, at most mostKeys. Named files come first, then the keys of
// the agent, then the usual files. The agent signs with a key that both have.
func (k *keyring) keys(ctx context.Context, t target) []key {
	k.mu.Lock()
	defer k.mu.Unlock()
	held := k.fromAgent(t.agent)
	var fromFiles []key
	for _, path := range t.keyFiles {
		fromFiles = append(fromFiles, k.fromFile(ctx, path, t.certificates, held)...)
	}
	switch {
	case t.usualFiles:
		fromFiles = append(slices.Clone(held), fromFiles...)
	case !t.onlyFiles:
		fromFiles = append(fromFiles, held...)
	}
	var all []key
	for _, one := range fromFiles {
		if !slices.ContainsFunc(all, func(other key) bool { return samePublic(other, one) }) {
			all = append(all, one)
		}
	}
	return all[:min(len(all), mostKeys)]
}

func samePublic(a, b cryptossh.Signer) bool {
	return bytes.Equal(a.PublicKey().Marshal(), b.PublicKey().Marshal())
}

// fromAgent returns the keys of an agent; none if it does not answer.
func (k *keyring) fromAgent(socket string) []key {
	if known, ok := k.agents[socket]; ok || socket == "" {
		return known
	}
	k.agents[socket] = nil
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return nil
	}
	k.closers = append(k.closers, conn)
	client := agent.NewClient(conn)
	signers, err := client.Signers()
	if err != nil {
		return nil
	}
	for _, s := range signers {
		name := cryptossh.FingerprintSHA256(s.PublicKey())
		if own, ok := s.PublicKey().(*agent.Key); ok && own.Comment != "" {
			name = own.Comment
		}
		k.agents[socket] = append(k.agents[socket], key{name + " of the agent", s})
	}
	return k.agents[socket]
}

// fromFile returns the key of a file, with its certificate before it if there is one. A file that is
// missing or no key gives none.
func (k *keyring) fromFile(ctx context.Context, path string, certificates []string, held []key) (all []key) {
	signer := k.open(ctx, path)
	if signer == nil {
		return nil
	}
	one := key{path, signer}
	if i := slices.IndexFunc(held, func(other key) bool { return samePublic(other, signer) }); i >= 0 {
		one.Signer = held[i].Signer
	}
	for _, file := range append(slices.Clone(certificates), path+"-cert.pub") {
		if certified := certify(file, one.Signer); certified != nil {
			all = append(all, key{file, certified})
		}
	}
	return append(all, one)
}

// certify returns the signer with the certificate of a file; nil if it is not for this key.
func certify(file string, signer cryptossh.Signer) cryptossh.Signer {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil
	}
	public, _, _, _, err := cryptossh.ParseAuthorizedKey(text)
	certificate, ok := public.(*cryptossh.Certificate)
	if err != nil || !ok || !bytes.Equal(certificate.Key.Marshal(), signer.PublicKey().Marshal()) {
		return nil
	}
	certified, err := cryptossh.NewCertSigner(certificate, signer)
	if err != nil {
		return nil
	}
	return certified
}

func (k *keyring) open(ctx context.Context, path string) cryptossh.Signer {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil
	}
	signer, err := cryptossh.ParsePrivateKey(text)
	if err == nil {
		return signer
	}
	missing, ok := errors.AsType[*cryptossh.PassphraseMissingError](err)
	if !ok {
		return nil
	}
	if k.opened[path] == nil {
		public := missing.PublicKey
		if public == nil {
			public = publicBeside(path)
		}
		if public == nil {
			return nil
		}
		k.opened[path] = &lockedKey{ctx: ctx, path: path, text: text, public: public, ask: k.ask}
	}
	return k.opened[path]
}

// publicBeside reads the public key of a key in PEM, which does not contain it.
func publicBeside(path string) cryptossh.PublicKey {
	text, err := os.ReadFile(path + ".pub")
	if err != nil {
		return nil
	}
	public, _, _, _, err := cryptossh.ParseAuthorizedKey(text)
	if err != nil {
		return nil
	}
	return public
}

// lockedKey is a key with a passphrase. It asks for the passphrase once, when a server has accepted
// the public key.
type lockedKey struct {
	ctx    context.Context // of the command
	path   string
	text   []byte
	public cryptossh.PublicKey
	ask    Questions

	once   sync.Once
	signer cryptossh.Signer
	err    error
}

func (l *lockedKey) PublicKey() cryptossh.PublicKey { return l.public }

func (l *lockedKey) Sign(random io.Reader, data []byte) (*cryptossh.Signature, error) {
	return l.SignWithAlgorithm(random, data, "")
}

// SignWithAlgorithm makes RSA keys work, whose usual algorithm servers refuse.
func (l *lockedKey) SignWithAlgorithm(random io.Reader, data []byte, algorithm string) (*cryptossh.Signature, error) {
	l.once.Do(l.unlock)
	if l.err != nil {
		return nil, l.err
	}
	if able, ok := l.signer.(cryptossh.AlgorithmSigner); ok && algorithm != "" {
		return able.SignWithAlgorithm(random, data, algorithm)
	}
	return l.signer.Sign(random, data)
}

func (l *lockedKey) unlock() {
	if l.ask == nil {
		l.err = fmt.Errorf("%s needs a passphrase, and there is no terminal to ask on; "+
			"add it to the agent with ssh-add", l.path)
		return
	}
	passphrase, err := l.ask.Secret(l.ctx, "Passphrase of "+l.path+": ")
	if err == nil {
		l.signer, err = cryptossh.ParsePrivateKeyWithPassphrase(l.text, []byte(passphrase))
	}
	if err != nil {
		l.err = fmt.Errorf("%s: %w", l.path, err)
	}
}
