package netfilter

import (
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Rule is an iptables rule. Spec is its arguments: "-i", "flannel.1", "-j",
// "ACCEPT".
type Rule struct {
	Table, Chain string
	Spec         []string
}

// HasTable reports whether the kernel has a table of iptables.
func HasTable(table string) bool {
	if !host.HasProgram("iptables") {
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

// HasChain reports whether an iptables chain exists.
func HasChain(table, chain string) (bool, error) {
	if !host.HasProgram("iptables") {
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
	if !host.HasProgram("iptables") {
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
