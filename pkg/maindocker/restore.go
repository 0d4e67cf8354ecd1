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

// addressRecord saves docker0's address before the first move. It is the zero
// value if docker0 had no address, or if the record was lost.
var addressRecord = host.Record[netip.Prefix]{Path: host.StateDir + "/docker0-address", Valid: validAddress}

func validAddress(p netip.Prefix) error {
	if p == (netip.Prefix{}) || p.IsValid() && p.Addr().Is4() && p.Bits() <= 30 && p.Addr() != p.Masked().Addr() {
		return nil
	}
	return fmt.Errorf("%s is not an address of a bridge", p)
}

// noteAddress saves docker0's address once, before the first move.
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

// recordsDiff verifies the records that only moveBack reads.
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

// moved reports whether daemon.json has the settings of Move, completely or
// partly.
func (b Bridge) moved() (bool, error) {
	_, err := b.original()
	if host.Lost(err) {
		now, err := readSettings(b.Files, daemonJSON)
		return err == nil && areOurs(now), err
	}
	return err == nil, err
}

// original returns the user's settings before the first move.
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

// recoverOriginal reconstructs a lost original of daemon.json: the current
// settings without those of Move. It returns why the original was lost.
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

// moveBack restores daemon.json and docker0's address. It restarts Docker
// only if daemon.json has Move's settings, or if a restart by kube-bootstrap
// was interrupted.
//
// Docker saves the subnet of its bridge network in its database and would set
// docker0 to flannel's subnet again, although daemon.json does not contain it
// any more. moveBack therefore starts Docker once with the old address as
// bip, which Docker then saves, and restores the original daemon.json while
// Docker runs.
func (b Bridge) moveBack(ctx context.Context) error {
	lost, err := b.recoverOriginal()
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %s, so only kube-bootstrap's keys were removed; their previous values are unknown", daemonJSON, lostText(lost)))
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

// settingsBefore returns the user's settings with docker0's old address as
// bip, for one start.
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

// addressBefore returns docker0's address before the move or, if it is
// unknown, Docker's choice on a new host.
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
	step.Leave(ctx, fmt.Sprintf("docker0: its previous address is unknown (%s); it is now %s", lostText(err), address))
	return address, nil
}

// defaultAddress returns the first address for docker0 that overlaps no
// route, from the user's or Docker's address pools.
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

// addressPools lists networks for docker0: the first one of each address pool
// of the user, then Docker's defaults.
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
