package maindocker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
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
func noteAddress(files host.Files) error {
	return addressRecord.Ensure(files, func(error) (netip.Prefix, error) {
		if moved, err := moved(files); err != nil || moved {
			return netip.Prefix{}, err
		}
		link, _, err := links.Find(linkName)
		if err != nil || len(link.Addrs) == 0 {
			return netip.Prefix{}, err
		}
		return link.Addrs[0], nil
	})
}

// recordsDiff verifies the records that only moveBack reads.
func recordsDiff(files host.Files) (step.Diff, error) {
	if moved, err := moved(files); err != nil || !moved {
		return nil, err
	}
	address, err := addressRecord.Diff(files)
	if err != nil {
		return nil, err
	}
	if _, err := original(files); host.Lost(err) {
		address = append(address, "work out what "+daemonJSON+" was before: "+lostText(err))
	}
	return address, nil
}

func repairRecords(files host.Files) error {
	differ, err := recordsDiff(files)
	if err != nil || len(differ) == 0 {
		return err
	}
	_, err = recoverOriginal(files)
	return errors.Join(err, noteAddress(files))
}

func lostText(err error) string {
	if errors.Is(err, fs.ErrNotExist) {
		return "its record is missing"
	}
	return err.Error()
}

// moved reports whether daemon.json has the settings of Move, completely or
// partly.
func moved(files host.Files) (bool, error) {
	_, err := original(files)
	if host.Lost(err) {
		now, err := readSettings(files)
		return err == nil && areOurs(now), err
	}
	return err == nil, err
}

// original returns the user's settings before the first move.
func original(files host.Files) (settings, error) {
	data, err := files.UserFile(daemonJSON).Original()
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
// settings without the settings of Move. It returns why the original was lost.
func recoverOriginal(files host.Files) (lost, err error) {
	if _, lost = original(files); lost == nil || !host.Lost(lost) {
		return nil, lost
	}
	now, err := readSettings(files)
	if err != nil {
		return nil, err
	}
	if !areOurs(now) {
		return nil, files.UserFile(daemonJSON).Forget()
	}
	owner := withoutOurs(now)
	if len(owner) == 0 {
		return lost, files.UserFile(daemonJSON).SaveOriginal(nil)
	}
	return lost, files.UserFile(daemonJSON).SaveOriginal(encode(owner))
}

// moveTo restarts Docker with data as its daemon.json; nil stands for the
// current file.
func (d Daemon) moveTo(ctx context.Context, lease subnet.Lease, data []byte) error {
	if err := errors.Join(noteAddress(d.Files), notePolicy(d.Files)); err != nil {
		return err
	}
	err := d.whileStopped(ctx, false, data, func() error {
		if err := writeSettings(d.Files, data); err != nil {
			return err
		}
		return setLink(lease)
	})
	if errors.As(err, new(startError)) {
		// Docker refused the settings: restore the user's settings.
		return errors.Join(err, d.moveBack(context.WithoutCancel(ctx)))
	}
	return err
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
// https://github.com/moby/moby/issues/49353
func (d Daemon) moveBack(ctx context.Context) error {
	lost, err := recoverOriginal(d.Files)
	if err != nil {
		return err
	}
	if lost != nil {
		step.Leave(ctx, fmt.Sprintf("%s: %s, so only kube-bootstrap's keys were removed; their previous values are "+
			"unknown", daemonJSON, lostText(lost)))
	}
	moved, err := moved(d.Files)
	if err != nil {
		return err
	}
	if moved || Interrupted(d.Files) {
		if err := d.restartBack(ctx, moved); err != nil {
			return err
		}
	}
	if err := errors.Join(unmergeFile(ctx, d.Files), keepPolicy(d.Files)); err != nil {
		return err
	}
	return d.Files.Drop(addressRecord.Path, policyRecord.Path)
}

func (d Daemon) restartBack(ctx context.Context, moved bool) error {
	var data []byte
	if moved {
		var err error
		if data, err = settingsBefore(ctx, d.Files); err != nil {
			return err
		}
	}
	err := d.whileStopped(ctx, true, data, func() error {
		return errors.Join(writeSettings(d.Files, data), links.Delete(linkName))
	})
	if err != nil && moved {
		return errors.Join(err, withdrawAddress(d.Files, data))
	}
	return err
}

// withdrawAddress removes the address for one start from daemon.json after a failure. The
// record of the original stays, so that the next moveBack writes the address again.
func withdrawAddress(files host.Files, forOneStart []byte) error {
	now, err := files.Read(daemonJSON)
	if err != nil || !bytes.Equal(now, forOneStart) {
		return err
	}
	back, _, err := unmerged(files)
	if err != nil {
		return err
	}
	return writeSettings(files, encode(back))
}

// settingsBefore returns the user's settings with docker0's old address as
// bip, for one start.
func settingsBefore(ctx context.Context, files host.Files) ([]byte, error) {
	back, _, err := unmerged(files)
	if err != nil {
		return nil, err
	}
	if back["bip"] == nil {
		old, err := addressBefore(ctx, files, back)
		if err != nil {
			return nil, err
		}
		back["bip"] = old.String()
	}
	return encode(back), nil
}

// addressBefore returns docker0's address before the move or, if it is
// unknown, Docker's choice on a new host.
func addressBefore(ctx context.Context, files host.Files, owner settings) (netip.Prefix, error) {
	old, err := addressRecord.Read(files)
	if err == nil && old.IsValid() {
		return old, nil
	}
	if err != nil && !host.Lost(err) {
		return old, err
	}
	routes, routesErr := links.Routes()
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
func defaultAddress(owner settings, routes []links.Route) netip.Prefix {
	for _, subnet := range addressPools(owner) {
		taken := slices.ContainsFunc(routes, func(r links.Route) bool {
			return r.Link != linkName && r.Dst.Bits() > 0 && r.Dst.Overlaps(subnet)
		})
		if !taken {
			return netip.PrefixFrom(subnet.Addr().Next(), subnet.Bits())
		}
	}
	return netip.MustParsePrefix("172.17.0.1/16")
}

// addressPools lists networks for docker0: the first one of each address pool
// of the user, then Docker's defaults.
func addressPools(owner settings) (all []netip.Prefix) {
	pools, _ := owner["default-address-pools"].([]any)
	for _, pool := range pools {
		one, _ := pool.(map[string]any)
		base, _ := one["base"].(string)
		p, err := netip.ParsePrefix(base)
		var bits int
		if _, scanErr := fmt.Sscan(fmt.Sprint(one["size"]), &bits); err == nil && scanErr == nil && p.Addr().Is4() &&
			bits >= p.Bits() && bits <= 30 {
			all = append(all, netip.PrefixFrom(p.Masked().Addr(), bits))
		}
	}
	for second := byte(17); second < 32; second++ {
		all = append(all, netip.PrefixFrom(netip.AddrFrom4([4]byte{172, second}), 16))
	}
	return all
}
