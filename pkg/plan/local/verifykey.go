package local

import (
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// VerifyKeyFile is the public key that the cluster has given to a host that joined.
const VerifyKeyFile = host.StateDir + "/verify-key.pub"

// RequiredKey returns the public key that bundles must be signed by, for hosts that join; nil:
// they need no signature.
func RequiredKey(h *Host) ([]byte, error) {
	if h.Config.VerifyKey == "" {
		return nil, nil
	}
	if h.key != nil {
		return h.key, nil
	}
	if Foreign(h, "verifyKey", h.Config.VerifyKey) {
		return nil, ForeignError("verifyKey", h.Config.VerifyKey)
	}
	key, err := h.Files.Read(h.Config.VerifyKey)
	if err != nil { // not wrapped: fs.ErrNotExist would mean that an earlier step makes the file
		err = fmt.Errorf("verifyKey: %s; put the public key back, or set --verify-key", err.Error())
	}
	return key, err
}

// takeKey has this host require the signature that the cluster requires, unless the user sets
// another key or none.
func takeKey(h *Host, key []byte) {
	if len(key) > 0 && h.Config.VerifyKey == "" && h.Given["verifyKey"].Source <= config.FromHost {
		h.Config.VerifyKey, h.key = VerifyKeyFile, key
	}
}

// KeyFiles returns the file of the key that this run has received.
func KeyFiles(h *Host) []host.File {
	if h.key == nil {
		return nil
	}
	return []host.File{{Path: VerifyKeyFile, Data: h.key, Mode: 0o644}}
}
