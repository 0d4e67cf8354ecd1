// Package netfilter reads and changes rules of iptables and tables of nftables.
package netfilter

import (
	"context"
	"fmt"
	"iter"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// DeleteChains deletes the selected chains in all tables, and the rules that jump to them.
func DeleteChains(ctx context.Context, selected func(chain string) bool) error {
	if !host.HasProgram("iptables") {
		return withoutIptables()
	}
	return deleteChains(ctx, "iptables", selected)
}

// deleteChains deletes all chains in one transaction per table, because a program
// per chain takes longer than everything else that turndown does. The transaction
// fails if another program, such as Docker, has deleted one of the rules meanwhile.
// It then lists the rules again.
func deleteChains(ctx context.Context, program string, selected func(chain string) bool) error {
	for try := 1; ; try++ {
		rules, err := host.Run(ctx, program+"-save") // iptables -S would create a table by listing it
		if err != nil {
			return err
		}
		deletion := deletionOf(rules, selected)
		if deletion == "" {
			return nil
		}
		if err := restore(ctx, program, deletion); err == nil || try == tries {
			return err
		}
	}
}

// deletionOf turns the output of iptables-save into the input of iptables-restore that
// deletes the selected chains; "" if there are none.
func deletionOf(rules string, selected func(chain string) bool) string {
	var all strings.Builder
	for table, lines := range savedTables(rules) {
		var jumps, flushes, deletions strings.Builder
		for _, line := range lines {
			chain, is := savedChain(line)
			words := strings.Fields(line)
			switch {
			case is && selected(chain):
				fmt.Fprintf(&flushes, "-F %s\n", chain)
				fmt.Fprintf(&deletions, "-X %s\n", chain)
			case !is && len(words) > 1 && !selected(words[1]) && selected(jumpTarget(words)):
				fmt.Fprintln(&jumps, "-D"+strings.TrimPrefix(line, "-A"))
			}
		}
		all.WriteString(transaction(table, jumps.String()+flushes.String()+deletions.String()))
	}
	return all.String()
}

// savedTables returns the lines of each table in the output of iptables-save.
func savedTables(rules string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		var table string
		var lines []string
		for line := range strings.Lines(rules) {
			line = strings.TrimSuffix(line, "\n")
			switch {
			case strings.HasPrefix(line, "*"):
				table, lines = line[1:], nil
			case line == "COMMIT":
				if !yield(table, lines) {
					return
				}
			default:
				lines = append(lines, line)
			}
		}
	}
}

// savedChain returns the name of the chain that a line of iptables-save defines,
// ":KUBE-SERVICES - [0:0]". A built-in chain has a policy instead of "-".
func savedChain(line string) (name string, ok bool) {
	name, rest, _ := strings.Cut(strings.TrimPrefix(line, ":"), " ")
	return name, strings.HasPrefix(line, ":") && strings.HasPrefix(rest, "-")
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
