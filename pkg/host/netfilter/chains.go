// Package netfilter reads and changes the packet filters of the kernel: the
// chains and rules of iptables, and the tables of nftables.
package netfilter

import (
	"context"
	"fmt"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// DeleteChains flushes and deletes the chains of a table for which selected
// returns true, and the rules in other chains that jump to them.
func DeleteChains(ctx context.Context, table string, selected func(chain string) bool) error {
	return deleteChains(ctx, "iptables", table, selected)
}

// deleteChains deletes all chains of a table in one transaction, because a
// program per chain takes longer than everything else that turndown does. The
// transaction fails if another program, such as Docker, has deleted one of the
// rules meanwhile. It then lists the rules again.
func deleteChains(ctx context.Context, program, table string, selected func(chain string) bool) error {
	const tries = 3
	for try := 1; ; try++ {
		rules, err := tableRules(ctx, program, table)
		if err != nil {
			return err
		}
		deletion := deletionOf(table, rules, selected)
		if deletion == "" {
			return nil
		}
		_, err = host.Command{Args: []string{program + "-restore", "-w", "--noflush"}, Stdin: strings.NewReader(deletion)}.Run(ctx)
		if err == nil || try == tries {
			return err
		}
	}
}

// tableRules returns the chains and rules of a table, as iptables -S prints them.
func tableRules(ctx context.Context, program, table string) (string, error) {
	return host.Run(ctx, program, "-w", "-t", table, "-S")
}

// deletionOf returns the input of iptables-restore that deletes chains, from the
// output of iptables -S; "" if there is nothing to delete.
func deletionOf(table, rules string, selected func(chain string) bool) string {
	var jumps, flushes, deletions strings.Builder
	for line := range strings.Lines(rules) {
		words := strings.Fields(line)
		if len(words) < 2 {
			continue
		}
		switch is := selected(words[1]); {
		case words[0] == "-N" && is:
			fmt.Fprintf(&flushes, "-F %s\n", words[1])
			fmt.Fprintf(&deletions, "-X %s\n", words[1])
		case words[0] == "-A" && !is && selected(jumpTarget(words)):
			jumps.WriteString("-D" + strings.TrimPrefix(strings.TrimSuffix(line, "\n"), "-A") + "\n")
		}
	}
	all := jumps.String() + flushes.String() + deletions.String()
	if all == "" {
		return ""
	}
	return "*" + table + "\n" + all + "COMMIT\n"
}

// jumpTarget returns the target of a rule; "" if it has none.
func jumpTarget(words []string) string {
	for i, w := range words {
		if (w == "-j" || w == "-g") && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
