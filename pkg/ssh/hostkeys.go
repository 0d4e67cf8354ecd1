package ssh

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"

	"github.com/skeema/knownhosts"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// hostKeys are the known keys of servers: the files of OpenSSH, and what was accepted in this run.
type hostKeys struct {
	home string
	ask  Questions

	mu       sync.Mutex // one question at a time
	known    *knownhosts.HostKeyDB
	accepted map[string]cryptossh.PublicKey
}

func readHostKeys(home string, ask Questions) (*hostKeys, error) {
	var paths []string
	for _, path := range []string{
		filepath.Join(home, ".ssh/known_hosts"), filepath.Join(home, ".ssh/known_hosts2"), "/etc/ssh/ssh_known_hosts",
	} {
		if _, err := os.Stat(path); err == nil {
			paths = append(paths, path)
		}
	}
	known, err := knownhosts.NewDB(paths...)
	if err != nil {
		return nil, &step.Problem{Name: "known-hosts", Text: err.Error(), Remedy: "correct the file", Firm: true}
	}
	return &hostKeys{home: home, ask: ask, known: known, accepted: map[string]cryptossh.PublicKey{}}, nil
}

// check returns the callback of the handshake with a server.
func (h *hostKeys) check(ctx context.Context, t target, acceptNew bool) cryptossh.HostKeyCallback {
	return func(_ string, remote net.Addr, key cryptossh.PublicKey) error {
		h.mu.Lock()
		defer h.mu.Unlock()
		if known, ok := h.accepted[t.knownAs()]; ok {
			if !bytes.Equal(known.Marshal(), key.Marshal()) {
				return changed(t, key)
			}
			return nil
		}
		err := h.known.HostKeyCallback()(t.knownAs(), remote, key)
		switch {
		case err == nil:
			return nil
		case knownhosts.IsHostKeyChanged(err):
			return changed(t, key)
		case !knownhosts.IsHostUnknown(err):
			return err
		}
		return h.unknown(ctx, t, key, acceptNew)
	}
}

func changed(t target, key cryptossh.PublicKey) error {
	return &step.Problem{
		Name: "host-key-changed", Firm: true,
		Text: fmt.Sprintf("machine %s: %s has another host key than known_hosts: %s",
			t.name, t.address(), cryptossh.FingerprintSHA256(key)),
		Remedy: "find out why; if the machine was installed again, run `ssh-keygen -R " +
			knownhosts.Normalize(t.knownAs()) + "`",
	}
}

// unknown accepts a new key, or asks the user.
func (h *hostKeys) unknown(ctx context.Context, t target, key cryptossh.PublicKey, acceptNew bool) error {
	fingerprint := cryptossh.FingerprintSHA256(key)
	if !acceptNew && h.ask == nil {
		return &step.Problem{
			Name: "host-key-unknown", Firm: true,
			Text: fmt.Sprintf("machine %s: known_hosts has no key of %s, which has %s %s",
				t.name, t.address(), key.Type(), fingerprint),
			Remedy: "compare it with the machine's, then add --accept-new-host-keys, or connect once with ssh",
		}
	}
	if !acceptNew {
		yes, err := h.ask.Confirm(ctx, fmt.Sprintf("machine %s: the host key of %s is unknown: %s %s. Accept it?",
			t.name, t.address(), key.Type(), fingerprint))
		if err != nil {
			return err
		}
		if !yes {
			return &step.Problem{
				Name: "host-key-unknown", Firm: true, Text: "machine " + t.name + ": its host key was not accepted",
			}
		}
	}
	h.accepted[t.knownAs()] = key
	return h.remember(t, key)
}

// remember adds a key to the known_hosts of the user.
func (h *hostKeys) remember(t target, key cryptossh.PublicKey) error {
	path := filepath.Join(h.home, ".ssh/known_hosts")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	line := knownhosts.Line([]string{t.knownAs()}, key) + "\n"
	before, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		return err
	}
	if len(before) > 0 && !bytes.HasSuffix(before, []byte("\n")) {
		before = append(before, '\n')
	}
	return host.WriteFile(path, append(before, line...), 0o600)
}

// algorithms returns the algorithms of the known keys of a server; nil if there are none.
func (h *hostKeys) algorithms(t target) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.known.HostKeyAlgorithms(t.knownAs())
}
