package kubelet

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const foundFile = host.StateDir + "/kubelet-found.json"

// found is what was on the host before the kubelet.
type found struct {
	Entries []string `json:"entries"` // of Dir
	Tables  []string `json:"tables"`  // of nftables, "ip filter"
	Chains  []string `json:"chains"`  // where the kernel enters those, "ip filter INPUT"
}

func (k Kubelet) rememberFound(ctx context.Context) error {
	if k.Files.Exists(foundFile) {
		return nil
	}
	var f found
	var err error
	if f.Entries, err = k.Files.Entries(Dir); err != nil {
		return err
	}
	if f.Tables, err = host.NftTables(ctx); err != nil {
		return err
	}
	if f.Chains, err = host.NftBaseChains(ctx); err != nil {
		return err
	}
	return k.Files.Remember(foundFile, f)
}

// restoreFound removes all that the kubelet and kube-proxy made. Without what
// was found nothing was ever done here.
func (k Kubelet) restoreFound(ctx context.Context) error {
	var f found
	if known, err := k.Files.Recall(foundFile, &f); err != nil || !known {
		return err
	}
	err := errors.Join(
		k.unmount(),
		k.Files.RemoveOthers(Dir, f.Entries),
		k.Files.Drop(Kubeconfig, BootstrapConfig),
		host.DeleteChainsEverywhere("KUBE-"),
		host.DeleteNftTable(ctx, "ip", "kube-proxy"),
		host.DeleteNftTable(ctx, "ip6", "kube-proxy"),
		removeTables(ctx, f.Tables),
		removeChains(ctx, f.Chains),
		k.removeEmpty(),
	)
	if err != nil {
		return err
	}
	return k.Files.Remove(foundFile)
}

// unmount takes away what pods had mounted, and our own mount of Dir on itself.
func (k Kubelet) unmount() error {
	if !k.Files.Exists(sharedFile) {
		return host.UnmountInside(k.Files.Path(Dir))
	}
	if err := host.UnmountBelow(k.Files.Path(Dir)); err != nil {
		return err
	}
	return k.Files.Remove(sharedFile)
}

// removeTables removes the empty tables that iptables left, save those that
// were there before.
func removeTables(ctx context.Context, before []string) error {
	tables, err := host.NftTables(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, table := range tables {
		if ofIptables(table) && !slices.Contains(before, table) {
			errs = append(errs, host.DeleteEmptyNftTable(ctx, table))
		}
	}
	return errors.Join(errs...)
}

// removeChains does the same in the tables that were there before.
func removeChains(ctx context.Context, before []string) error {
	chains, err := host.NftBaseChains(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, chain := range chains {
		table := chain[:strings.LastIndex(chain, " ")]
		if ofIptables(table) && !slices.Contains(before, chain) {
			errs = append(errs, host.DeleteEmptyNftChain(ctx, chain))
		}
	}
	return errors.Join(errs...)
}

func ofIptables(table string) bool {
	family, name, _ := strings.Cut(table, " ")
	return (family == "ip" || family == "ip6") && slices.Contains([]string{"filter", "nat", "mangle", "raw"}, name)
}
