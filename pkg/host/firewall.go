package host

import (
	"errors"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// Rule is one iptables rule, "-i flannel.1 -o docker0 -j ACCEPT" in words.
type Rule struct {
	Table, Chain string
	Spec         []string
}

// HasTable reports whether the kernel has that table of iptables.
func HasTable(table string) bool {
	if !HasProgram("iptables") {
		return false
	}
	ipt, err := iptables.New()
	if err == nil {
		_, err = ipt.ListChains(table)
	}
	return err == nil
}

// HasRule reports whether the rule is there. A chain that is not there has none.
func HasRule(r Rule) (bool, error) {
	ipt, err := iptables.New()
	if err != nil {
		return false, err
	}
	if ok, err := ipt.ChainExists(r.Table, r.Chain); err != nil || !ok {
		return false, err
	}
	return ipt.Exists(r.Table, r.Chain, r.Spec...)
}

// InsertRule puts the rule first in its chain unless it is there; the chain
// is made if it is missing.
func InsertRule(r Rule) error {
	ipt, err := iptables.New()
	if err != nil {
		return err
	}
	if ok, err := ipt.ChainExists(r.Table, r.Chain); err != nil {
		return err
	} else if !ok {
		if err := ipt.NewChain(r.Table, r.Chain); err != nil {
			return err
		}
	}
	return ipt.InsertUnique(r.Table, r.Chain, 1, r.Spec...)
}

// DeleteRule removes the rule; one that is not there is no error.
func DeleteRule(r Rule) error {
	has, err := HasRule(r)
	if err != nil || !has {
		return err
	}
	ipt, err := iptables.New()
	if err != nil {
		return err
	}
	return ipt.DeleteIfExists(r.Table, r.Chain, r.Spec...)
}

// DeleteChains flushes and removes chains of a table for which ours reports
// true, with the rules elsewhere that jump to them.
func DeleteChains(table string, ours func(chain string) bool) error {
	ipt, err := iptables.New()
	if err != nil {
		return err
	}
	return deleteChains(ipt, table, ours)
}

func deleteChains(ipt *iptables.IPTables, table string, ours func(chain string) bool) error {
	chains, err := ipt.ListChains(table)
	if err != nil {
		return err
	}
	var errs []error
	for _, chain := range chains {
		if !ours(chain) {
			errs = append(errs, deleteJumps(ipt, table, chain, ours))
		}
	}
	for _, chain := range chains {
		if ours(chain) {
			errs = append(errs, ipt.ClearChain(table, chain))
		}
	}
	for _, chain := range chains {
		if ours(chain) {
			errs = append(errs, ipt.DeleteChain(table, chain))
		}
	}
	return errors.Join(errs...)
}

func deleteJumps(ipt *iptables.IPTables, table, chain string, ours func(string) bool) error {
	rules, err := ipt.List(table, chain)
	var refused *iptables.Error
	if errors.As(err, &refused) && refused.IsNotExist() {
		return nil // Docker, stopping at the same time, took its chain away
	}
	if err != nil {
		return err
	}
	// From the last to the first, so that the numbers before it stay right.
	// List begins with the chain's policy or name, so index i is rule i.
	for i := len(rules) - 1; i >= 1; i-- {
		if !ours(jumpTarget(rules[i])) {
			continue
		}
		if err := ipt.DeleteById(table, chain, i); err != nil {
			return err
		}
	}
	return nil
}

func jumpTarget(rule string) string {
	words := strings.Fields(rule)
	for i, w := range words {
		if (w == "-j" || w == "-g") && i+1 < len(words) {
			return words[i+1]
		}
	}
	return ""
}
