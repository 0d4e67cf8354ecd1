package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
)

// foundRecord lists what existed on the host before the kubelet.
var foundRecord = host.Record[found]{Path: host.StateDir + "/kubelet-found.json", Valid: found.valid}

// found has lists that are never nil.
type found struct {
	Entries []string `json:"entries"` // of Dir
	Tables  []string `json:"tables"`  // of nftables, "ip filter"
	Chains  []string `json:"chains"`  // where the kernel enters those, "ip filter INPUT"
}

func (f found) valid() error {
	if f.Entries == nil || f.Tables == nil || f.Chains == nil {
		return errors.New("it lacks a list")
	}
	for _, name := range f.Entries {
		if name == "" || strings.Contains(name, "/") {
			return fmt.Errorf("%q is not the name of a file", name)
		}
	}
	return nil
}

// rememberFound records the state of the host before the kubelet starts. After the loss
// of the record, everything in Dir and all tables and chains count as the kubelet's: no
// other program uses Dir, and only empty tables and chains are removed.
func rememberFound(ctx context.Context, files host.Files) error {
	return foundRecord.Ensure(files, func(lost error) (found, error) {
		if host.IsDamaged(lost) || hasBeen(files) {
			return found{Entries: []string{}, Tables: []string{}, Chains: []string{}}, nil
		}
		entries, err := files.Entries(Dir)
		tables, tablesErr := netfilter.NftTables(ctx)
		chains, chainsErr := netfilter.NftBaseChains(ctx)
		before := found{append([]string{}, entries...), append([]string{}, tables...), append([]string{}, chains...)}
		return before, errors.Join(err, tablesErr, chainsErr)
	})
}

// restoreFound removes everything that the kubelet and kube-proxy have created.
func restoreFound(ctx context.Context, files host.Files) error {
	if !files.Exists(foundRecord.Path) && !hasBeen(files) {
		return nil
	}
	if err := rememberFound(ctx, files); err != nil {
		return err
	}
	if !files.Exists(sysctlRecord.Path) {
		leaveSysctls(ctx)
	}
	f, err := foundRecord.Read(files)
	if err != nil {
		return err
	}
	if err := unmount(files); err != nil {
		return err // the volumes of pods that are still mounted must not be emptied
	}
	err = errors.Join(
		files.RemoveOthers(Dir, f.Entries),
		files.Drop(Kubeconfig, BootstrapConfig),
		files.RemoveAll(VolumesDir),
		netfilter.DeleteChainsEverywhere(ctx, "KUBE-"),
		netfilter.DeleteNftTable(ctx, "ip kube-proxy"),
		netfilter.DeleteNftTable(ctx, "ip6 kube-proxy"),
		removeNew(ctx, "table", f.Tables, netfilter.NftTables),
		removeNew(ctx, "chain", f.Chains, netfilter.NftBaseChains),
		removeEmpty(files),
	)
	if err != nil {
		return err
	}
	return files.Remove(foundRecord.Path)
}

// removeNew removes the empty tables or chains of iptables that are not in before.
func removeNew(ctx context.Context, kind string, before []string, list func(context.Context) ([]string, error)) error {
	now, err := list(ctx)
	if err != nil {
		return err
	}
	added := slices.DeleteFunc(now, func(name string) bool {
		return !netfilter.OfIptables(name) || slices.Contains(before, name)
	})
	return netfilter.DeleteEmptyNft(ctx, kind, added)
}
