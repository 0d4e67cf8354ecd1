package host

import (
	"errors"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// Rule is an iptables rule. Spec is its arguments: "-i", "flannel.1", "-j",
// "ACCEPT".
type Rule struct {
	Table, Chain string
	Spec         []string
}

// HasTable reports whether the kernel has a table of iptables.
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

// HasRule reports whether the rule exists.
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

// InsertRule inserts the rule at the beginning of its chain, unless it
// exists. It creates the chain if necessary.
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

// DeleteRule deletes the rule. A missing rule is not an error.
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

// DeleteChains flushes and deletes the chains of a table for which selected
// returns true, and the rules in other chains that jump to them.
func DeleteChains(table string, selected func(chain string) bool) error {
	ipt, err := iptables.New()
	if err != nil {
		return err
	}
	return deleteChains(ipt, table, selected)
}

func deleteChains(ipt *iptables.IPTables, table string, selected func(chain string) bool) error {
	chains, err := ipt.ListChains(table)
	if err != nil {
		return err
	}
	var errs []error
	for _, chain := range chains {
		if !selected(chain) {
			errs = append(errs, deleteJumps(ipt, table, chain, selected))
		}
	}
	for _, chain := range chains {
		if selected(chain) {
			errs = append(errs, ipt.ClearChain(table, chain))
		}
	}
	for _, chain := range chains {
		if selected(chain) {
			errs = append(errs, ipt.DeleteChain(table, chain))
		}
	}
	return errors.Join(errs...)
}

func deleteJumps(ipt *iptables.IPTables, table, chain string, selected func(string) bool) error {
	rules, err := ipt.List(table, chain)
	var refused *iptables.Error
	if errors.As(err, &refused) && refused.IsNotExist() {
		return nil // Docker, while it stops, may have deleted its chain
	}
	if err != nil {
		return err
	}
	// Delete the last rule first, because a deletion changes the numbers of the
	// rules after it. The first line of List is the chain itself, so the rule at
	// index i has number i.
	for i := len(rules) - 1; i >= 1; i-- {
		if !selected(jumpTarget(rules[i])) {
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

// HasChain reports whether an iptables chain exists.
func HasChain(table, chain string) (bool, error) {
	if !HasProgram("iptables") {
		return false, nil
	}
	ipt, err := iptables.New()
	if err != nil {
		return false, err
	}
	return ipt.ChainExists(table, chain)
}

// OtherRules lists the rules of a chain whose comment begins with mark, except
// the wanted ones. The result is empty if the chain does not exist.
func OtherRules(table, chain, mark string, wanted []Rule) (texts []string, err error) {
	err = eachOtherRule(table, chain, mark, wanted, func(_ *iptables.IPTables, _ int, text string) error {
		texts = append(texts, text)
		return nil
	})
	slices.Reverse(texts)
	return texts, err
}

// DeleteOtherRules deletes the rules that OtherRules lists.
func DeleteOtherRules(table, chain, mark string, wanted []Rule) error {
	return eachOtherRule(table, chain, mark, wanted, func(ipt *iptables.IPTables, number int, _ string) error {
		return ipt.DeleteById(table, chain, number)
	})
}

// eachOtherRule calls do with the number and the text of each rule. It begins
// with the last rule, because a deletion changes the numbers of the rules after
// it.
func eachOtherRule(table, chain, mark string, wanted []Rule, do func(ipt *iptables.IPTables, number int, text string) error) error {
	if !HasProgram("iptables") {
		return nil
	}
	ipt, err := iptables.New()
	if err != nil {
		return err
	}
	ok, err := ipt.ChainExists(table, chain)
	if err != nil || !ok {
		return err
	}
	rules, err := ipt.List(table, chain)
	if err != nil {
		return err
	}
	for number := len(rules) - 1; number >= 1; number-- { // the first line is the chain itself
		text := strings.TrimPrefix(rules[number], "-A "+chain+" ")
		if !strings.Contains(text, `--comment "`+mark) || isWanted(text, wanted) {
			continue
		}
		if err := do(ipt, number, text); err != nil {
			return err
		}
	}
	return nil
}

func isWanted(text string, wanted []Rule) bool {
	return slices.ContainsFunc(wanted, func(r Rule) bool {
		return sortedWords(text) == sortedWords(strings.Join(r.Spec, " "))
	})
}

// sortedWords makes rules comparable, because iptables prints the matches of
// a rule in another order than they were given.
func sortedWords(rule string) string {
	words := strings.Fields(strings.ReplaceAll(rule, `"`, ""))
	slices.Sort(words)
	return strings.Join(words, " ")
}
