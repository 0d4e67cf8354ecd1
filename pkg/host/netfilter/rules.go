package netfilter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Place is a chain in a table of iptables.
type Place struct{ Table, Chain string }

// Rule is an iptables rule. Spec is its arguments: "-i", "flannel.1", "-j", "ACCEPT".
type Rule struct {
	At   Place
	Spec []string
	Last bool // after the rules of others; otherwise before them
}

// text returns the arguments as iptables-restore reads them.
func (r Rule) text() string {
	words := slices.Clone(r.Spec)
	for i, word := range words {
		if strings.Contains(word, " ") {
			words[i] = strconv.Quote(word)
		}
	}
	return strings.Join(words, " ")
}

// Has reports whether the rule exists.
func (c *Chains) Has(r Rule) (bool, error) {
	rules, err := c.Rules(r.At.Table, r.At.Chain)
	return has(rules, r), err
}

func has(rules []string, r Rule) bool {
	return slices.ContainsFunc(rules, func(rule string) bool { return isWanted(specOf(rule, r.At.Chain), []Rule{r}) })
}

// Others lists the rules of a chain whose comment begins with mark, except the wanted.
func (c *Chains) Others(at Place, mark string, wanted []Rule) (texts []string, err error) {
	rules, err := c.Rules(at.Table, at.Chain)
	for _, rule := range rules {
		if text := specOf(rule, at.Chain); isOther(text, mark, wanted) {
			texts = append(texts, text)
		}
	}
	return texts, err
}

// SetRules adds the wanted rules that the places lack, and then deletes the Others, so that traffic is
// never interrupted. It may create the chains. One program makes all changes, because a program for each
// rule would take longer than the rest of the step. It fails if another program, such as Docker, has
// changed the chains meanwhile. SetRules then reads them again.
func (c *Chains) SetRules(ctx context.Context, mark string, wanted []Rule, places ...Place) error {
	for try := 1; ; try++ {
		changes, err := c.changes(mark, wanted, places)
		if err != nil || changes == "" {
			return err
		}
		clear(c.read)
		if err := restore(ctx, c.program.path, changes); err == nil || try == tries {
			return err
		}
	}
}

// changes returns the input of iptables-restore that makes the changes of SetRules; "" if there are none.
func (c *Chains) changes(mark string, wanted []Rule, places []Place) (string, error) {
	var adding, deleting strings.Builder
	for _, at := range places {
		lines, err := c.lines(at.Table, at.Chain)
		if err != nil {
			return "", err
		}
		own := slices.DeleteFunc(slices.Clone(wanted), func(r Rule) bool { return r.At != at })
		others, err := c.Others(at, mark, own)
		if err != nil {
			return "", err
		}
		adding.WriteString(transaction(at.Table, additions(at.Chain, lines, own)))
		deleting.WriteString(transaction(at.Table, deletions(at.Chain, others)))
	}
	return adding.String() + deleting.String(), nil
}

func transaction(table, changes string) string {
	if changes == "" {
		return ""
	}
	return "*" + table + "\n" + changes + "COMMIT\n"
}

// additions adds the rules to a chain that lacks them. lines is what `iptables -S` prints about it.
func additions(chain string, lines []string, wanted []Rule) string {
	var all strings.Builder
	if len(lines) == 0 && len(wanted) > 0 {
		fmt.Fprintf(&all, ":%s - [0:0]\n", chain)
	}
	rules := slices.Clone(lines[min(1, len(lines)):]) // the first line is the chain itself
	for _, r := range wanted {
		if has(rules, r) {
			continue
		}
		place := 0
		if r.Last {
			place = lastPlace(rules, chain)
		}
		fmt.Fprintf(&all, "-I %s %d %s\n", chain, place+1, r.text())
		rules = slices.Insert(rules, place, "-A "+chain+" "+r.text())
	}
	return all.String()
}

func deletions(chain string, specs []string) string {
	var all strings.Builder
	for _, spec := range specs {
		fmt.Fprintf(&all, "-D %s %s\n", chain, spec)
	}
	return all.String()
}

// lastPlace returns the index that a new last rule gets in a chain. The rule precedes a final
// RETURN: Docker before 28.2.2 ends DOCKER-USER with one.
// https://github.com/moby/moby/blob/v28.2.1/libnetwork/firewall_linux.go#L58
func lastPlace(rules []string, chain string) int {
	if end := len(rules) - 1; end >= 0 && specOf(rules[end], chain) == "-j RETURN" {
		return end
	}
	return len(rules)
}

// specOf returns what a line of `iptables -S` adds to its chain.
func specOf(rule, chain string) string { return strings.TrimPrefix(rule, "-A "+chain+" ") }

func isOther(text, mark string, wanted []Rule) bool {
	return strings.Contains(text, `--comment "`+mark) && !isWanted(text, wanted)
}

func isWanted(text string, wanted []Rule) bool {
	return slices.ContainsFunc(wanted, func(r Rule) bool {
		return sortedWords(text) == sortedWords(strings.Join(r.Spec, " "))
	})
}

// sortedWords makes rules comparable: iptables changes the order of their matches.
func sortedWords(rule string) string {
	words := strings.Fields(strings.ReplaceAll(rule, `"`, ""))
	slices.Sort(words)
	return strings.Join(words, " ")
}

// tries is how often changes are made that fail if another program changes the same chains meanwhile.
const tries = 3

// restore makes the changes in the form of iptables-save, one transaction for each table.
func restore(ctx context.Context, program, changes string) error {
	args := []string{program + "-restore", "-w", strconv.Itoa(lockSeconds), "--noflush"}
	_, err := host.Command{Args: args, Stdin: strings.NewReader(changes)}.Run(ctx)
	return err
}
