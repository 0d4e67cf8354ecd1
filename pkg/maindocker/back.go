package maindocker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// addressRecord keeps docker0's address from before the first move: the zero
// value if it had none, or if nobody knows it any more.
var addressRecord = host.Record[netip.Prefix]{Path: host.StateDir + "/docker0-address", Valid: validAddress}

func validAddress(p netip.Prefix) error {
	if p == (netip.Prefix{}) || p.IsValid() && p.Addr().Is4() && p.Bits() <= 30 && p.Addr() != p.Masked().Addr() {
		return nil
	}
	return fmt.Errorf("%s is not an address of a bridge", p)
}

// noteAddress remembers, once, where docker0 was. One that has moved cannot
// tell any more.
func (b Bridge) noteAddress() error {
	return addressRecord.Ensure(b.Files, func(error) (netip.Prefix, error) {
		if moved, err := b.moved(); err != nil || moved {
			return netip.Prefix{}, err
		}
		link, _, err := host.FindLink(linkName)
		if err != nil || len(link.Addrs) == 0 {
			return netip.Prefix{}, err
		}
		return link.Addrs[0], nil
	})
}

// recordsDiff asks for the records that only moveBack reads.
func (b Bridge) recordsDiff() (step.Diff, error) {
	if moved, err := b.moved(); err != nil || !moved {
		return nil, err
	}
	address, err := addressRecord.Diff(b.Files)
	if err != nil {
		return nil, err
	}
	if _, err := b.original(); host.Lost(err) {
		address = append(address, "work out what "+daemonJSON+" was before: "+lostText(err))
	}
	return address, nil
}

func lostText(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "its record is missing"
	}
	return err.Error()
}

// moved reports whether the settings are ours, whole or half-way.
func (b Bridge) moved() (bool, error) {
	_, err := b.original()
	if host.Lost(err) {
		now, err := readSettings(b.Files, daemonJSON)
		return err == nil && areOurs(now), err
	}
	return err == nil, err
}

// original returns the owner's settings from before the first move.
func (b Bridge) original() (settings, error) {
	data, err := b.Files.Original(daemonJSON)
	if err != nil {
		return nil, err
	}
	owner, err := decode(data)
	if err != nil {
		return nil, &host.Damaged{Path: "the record of " + daemonJSON, Err: err}
	}
	return owner, nil
}

// recoverOriginal replaces a record of daemon.json that was lost: the owner's
// settings are then what remains without ours. It returns what was lost.
func (b Bridge) recoverOriginal() (lost, err error) {
	if _, lost = b.original(); lost == nil || !host.Lost(lost) {
		return nil, lost
	}
	now, err := readSettings(b.Files, daemonJSON)
	if err != nil {
		return nil, err
	}
	if !areOurs(now) {
		return nil, b.Files.Forget(daemonJSON)
	}
	owner := withoutOurs(now)
	if len(owner) == 0 {
		return lost, b.Files.KeepOriginal(daemonJSON, nil)
	}
	data, err := encode(owner)
	if err != nil {
		return nil, err
	}
	return lost, b.Files.KeepOriginal(daemonJSON, data)
}

// moveBack restarts Docker only when its settings, or a restart that was cut
// short, are ours.
//
// Docker remembers the subnet of its bridge network in its own database, and
// would make docker0 on ours again although daemon.json says nothing of it any
// more. So it is started once with the old address as its bip, which it then
// remembers, and the owner's file is put back to the byte while it runs.
func (b Bridge) moveBack(ctx context.Context) error {
	lost, err := b.recoverOriginal()
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %s, so kube-bootstrap's keys were only taken out; a value that one of them had before is not known", daemonJSON, lostText(lost)))
	}
	moved, err := b.moved()
	if err != nil {
		return err
	}
	if moved || b.isPending() {
		if err := b.restartBack(ctx, moved); err != nil {
			return err
		}
	}
	if err := unmergeFile(b.Files, daemonJSON); err != nil {
		return err
	}
	return b.Files.Remove(addressRecord.Path)
}

func (b Bridge) restartBack(ctx context.Context, moved bool) error {
	var data []byte
	if moved {
		var err error
		if data, err = b.settingsBefore(ctx); err != nil {
			return err
		}
	}
	return b.whileStopped(ctx, pending{Back: true}, data, func() error {
		return errors.Join(b.writeSettings(data), host.DeleteLink(linkName))
	})
}

// settingsBefore are the owner's settings and, for one start, the address that
// docker0 had.
func (b Bridge) settingsBefore(ctx context.Context) ([]byte, error) {
	back, err := unmerged(b.Files, daemonJSON)
	if err != nil {
		return nil, err
	}
	if back["bip"] == nil {
		old, err := b.addressBefore(ctx, back)
		if err != nil {
			return nil, err
		}
		back["bip"] = old.String()
	}
	return encode(back)
}

// addressBefore is where docker0 was, or where Docker would put it on a fresh
// host if that is not known.
func (b Bridge) addressBefore(ctx context.Context, owner settings) (netip.Prefix, error) {
	old, err := addressRecord.Read(b.Files)
	if err == nil && old.IsValid() {
		return old, nil
	}
	if err != nil && !host.Lost(err) {
		return old, err
	}
	routes, routesErr := host.Routes()
	if routesErr != nil {
		return old, routesErr
	}
	address := defaultAddress(owner, routes)
	if err == nil {
		err = errors.New("it was not known")
	}
	step.Leave(ctx, fmt.Sprintf("docker0: its address from before is not known (%s); it is now %s", lostText(err), address))
	return address, nil
}

// defaultAddress is the first address for docker0 that no route overlaps, out
// of the owner's or of Docker's own address pools.
func defaultAddress(owner settings, routes []host.Route) netip.Prefix {
	for _, subnet := range addressPools(owner) {
		free := true
		for _, r := range routes {
			ours := r.Link == linkName || r.Dst.Bits() == 0
			free = free && (ours || !r.Dst.Overlaps(subnet))
		}
		if free {
			return netip.PrefixFrom(subnet.Addr().Next(), subnet.Bits())
		}
	}
	return netip.MustParsePrefix("172.17.0.1/16")
}

// addressPools lists networks for docker0: the first one of each of the owner's
// pools, then Docker's defaults.
func addressPools(owner settings) []netip.Prefix {
	var all []netip.Prefix
	pools, _ := owner["default-address-pools"].([]any)
	for _, pool := range pools {
		one, _ := pool.(map[string]any)
		base, _ := one["base"].(string)
		p, err := netip.ParsePrefix(base)
		var bits int
		if _, scanErr := fmt.Sscan(fmt.Sprint(one["size"]), &bits); err == nil && scanErr == nil && p.Addr().Is4() && bits >= p.Bits() && bits <= 30 {
			all = append(all, netip.PrefixFrom(p.Masked().Addr(), bits))
		}
	}
	for second := byte(17); second < 32; second++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, second}), 16))
	}
	return all
}
