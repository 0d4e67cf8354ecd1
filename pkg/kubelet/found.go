package kubelet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// foundRecord is what was on the host before the kubelet.
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

// rememberFound looks at the host before the kubelet starts. Once the record
// was lost, all that is here counts as the kubelet's: nobody else uses Dir, and
// of tables and chains only empty ones are ever removed.
func (k Kubelet) rememberFound(ctx context.Context) error {
	return foundRecord.Ensure(k.Files, func(lost error) (found, error) {
		if host.IsDamaged(lost) || k.hasBeen() {
			return found{Entries: []string{}, Tables: []string{}, Chains: []string{}}, nil
		}
		return k.look(ctx)
	})
}

func (k Kubelet) look(ctx context.Context) (f found, err error) {
	entries, err := k.Files.Entries(Dir)
	if err != nil {
		return f, err
	}
	tables, err := host.NftTables(ctx)
	if err != nil {
		return f, err
	}
	chains, err := host.NftBaseChains(ctx)
	return found{append([]string{}, entries...), append([]string{}, tables...), append([]string{}, chains...)}, err
}

// restoreFound removes all that the kubelet and kube-proxy made.
func (k Kubelet) restoreFound(ctx context.Context) error {
	if !k.Files.Exists(foundRecord.Path) && !k.hasBeen() {
		return nil
	}
	if err := k.rememberFound(ctx); err != nil {
		return err
	}
	if !k.Files.Exists(sysctlRecord.Path) {
		k.leaveSysctls(ctx)
	}
	f, err := foundRecord.Read(k.Files)
	if err != nil {
		return err
	}
	err = errors.Join(
		k.unmount(),
		k.Files.RemoveOthers(Dir, f.Entries),
		k.Files.Drop(Kubeconfig, BootstrapConfig),
		k.Files.RemoveAll(VolumesDir),
		host.DeleteChainsEverywhere(ctx, "KUBE-"),
		host.DeleteNftTable(ctx, "ip", "kube-proxy"),
		host.DeleteNftTable(ctx, "ip6", "kube-proxy"),
		removeTables(ctx, f.Tables),
		removeChains(ctx, f.Chains),
		k.removeEmpty(),
	)
	if err != nil {
		return err
	}
	return k.Files.Remove(foundRecord.Path)
}

// unmount takes away what pods had mounted, and our own mount of Dir on itself.
func (k Kubelet) unmount() error {
	mounted, err := host.MountedOnItself(k.Files.Path(Dir))
	if err != nil {
		return err
	}
	if !mounted && !k.Files.Exists(sharedFile) {
		return host.UnmountInside(k.Files.Path(Dir))
	}
	if err := host.UnmountBelow(k.Files.Path(Dir)); err != nil {
		return err
	}
	return k.Files.Remove(sharedFile)
}

// removeTables removes the empty tables that iptables left, except the
// tables in before.
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
