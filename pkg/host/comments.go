package host

import (
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"
)

// DeleteRulesWithComment removes from a chain the rules that carry a comment,
// save the one to keep (may be nil). A chain that is not there has none.
func DeleteRulesWithComment(table, chain, comment string, keep *Rule) error {
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
	kept := ""
	if keep != nil {
		kept = sortedWords(strings.Join(keep.Spec, " "))
	}
	// Index 0 is the chain itself; from the last, so that the numbers before it stay right.
	for i := len(rules) - 1; i >= 1; i-- {
		text := strings.TrimPrefix(rules[i], "-A "+chain+" ")
		if !strings.Contains(text, `--comment "`+comment+`"`) || sortedWords(text) == kept {
			continue
		}
		if err := ipt.DeleteById(table, chain, i); err != nil {
			return err
		}
	}
	return nil
}

// sortedWords compares rules whatever order iptables prints their matches in.
func sortedWords(rule string) string {
	words := strings.Fields(strings.ReplaceAll(rule, `"`, ""))
	slices.Sort(words)
	return strings.Join(words, " ")
}
