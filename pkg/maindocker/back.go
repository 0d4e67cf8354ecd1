package maindocker

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// addressFile holds docker0's address from before the first move.
const addressFile = host.StateDir + "/docker0-address"

// noteAddress remembers, once, where docker0 was.
func (b Bridge) noteAddress() error {
	if b.Files.Exists(addressFile) {
		return nil
	}
	link, _, err := host.FindLink(linkName)
	if err != nil {
		return err
	}
	address := ""
	if len(link.Addrs) > 0 {
		address = link.Addrs[0].String()
	}
	return b.Files.Write(addressFile, []byte(address), 0o600)
}

// moved reports whether the settings are ours, whole or half-way.
func (b Bridge) moved() (bool, error) {
	_, err := b.Files.Original(daemonJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// moveBack restarts Docker only when its settings, or a restart that was cut
// short, are ours.
//
// Docker remembers the subnet of its bridge network in its own database, and
// would make docker0 on ours again although daemon.json says nothing of it any
// more. So it is started once with the old address as its bip, which it then
// remembers, and the owner's file is put back to the byte while it runs.
func (b Bridge) moveBack(ctx context.Context) error {
	moved, err := b.moved()
	if err != nil {
		return err
	}
	if moved || b.isPending() {
		err := b.whileStopped(ctx, pending{Back: true}, func() error {
			return errors.Join(b.writeOldAddress(), host.DeleteLink(linkName))
		})
		if err != nil {
			return err
		}
	}
	if err := unmergeFile(b.Files, daemonJSON); err != nil {
		return err
	}
	return errors.Join(b.Files.Remove(addressFile), removeFirewall(ctx))
}

// writeOldAddress writes the owner's settings, and for this one start the
// address that docker0 had.
func (b Bridge) writeOldAddress() error {
	back, err := unmerged(b.Files, daemonJSON)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	address, err := b.Files.Read(addressFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if old := strings.TrimSpace(string(address)); old != "" && back["bip"] == nil {
		back["bip"] = old
	}
	data, err := encode(back)
	if err != nil {
		return err
	}
	return b.Files.Replace(daemonJSON, data, 0o644)
}
