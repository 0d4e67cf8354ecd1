package netfilter

import (
	"errors"
	"slices"
	"strings"

	"github.com/coreos/go-iptables/iptables"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Chains reads the chains of one firewall of the kernel, each only once.
type Chains struct {
	ipt  *iptables.IPTables
	has  func(table string) bool
	read map[[2]string][]string
}

// ReadChains reads the chains of the host's own iptables. Without iptables there
// are none.
func ReadChains() (*Chains, error) {
	if !host.HasProgram("iptables") {
		return newChains(nil, func(string) bool { return false }), nil
	}
	ipt, err := open("iptables")
	return newChains(ipt, func(string) bool { return true }), err
}

func newChains(ipt *iptables.IPTables, has func(string) bool) *Chains {
	return &Chains{ipt: ipt, has: has, read: map[[2]string][]string{}}
}

// AnyFirewall reports whether holds returns true for the IPv4 chains of one
// of the kernel's two firewalls, nftables and the older ip_tables. A
// component in a container may use another one than the host's iptables.
func AnyFirewall(holds func(*Chains) (bool, error)) (bool, error) {
	for _, program := range iptablesPrograms() {
		if program.proto != iptables.ProtocolIPv4 {
			continue
		}
		ipt, err := open(program.path)
		if err != nil {
			return false, err
		}
		if ok, err := holds(newChains(ipt, program.has)); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// incompatible is part of the error that iptables-nft 1.8.9 returns for a
// chain that does not exist.
const incompatible = "is incompatible, use 'nft' tool"

// Rules returns the rules of a chain as `iptables -S` prints them; none if
// the chain does not exist.
func (c *Chains) Rules(table, chain string) ([]string, error) {
	at := [2]string{table, chain}
	if rules, done := c.read[at]; done || !c.has(table) {
		return rules, nil
	}
	rules, err := c.ipt.List(table, chain)
	var refused *iptables.Error
	if errors.As(err, &refused) && (refused.IsNotExist() || strings.Contains(refused.Error(), incompatible)) {
		rules, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	if len(rules) > 0 {
		rules = rules[1:] // the first line is the chain itself
	}
	c.read[at] = rules
	return rules, nil
}

// HasTable reports whether the kernel has a table, which contains a chain.
func (c *Chains) HasTable(table, chain string) bool {
	if rules, err := c.Rules(table, chain); err == nil && len(rules) > 0 {
		return true
	}
	if c.ipt == nil {
		return false
	}
	_, err := c.ipt.ListChains(table)
	return err == nil
}

// Jump is a rule that jumps from one chain of a table to another chain.
type Jump struct{ Table, From, To string }

func (j Jump) String() string {
	return "the jump from " + j.From + " to " + j.To + " (table " + j.Table + ")"
}

// Missing returns the jumps that do not exist.
func (c *Chains) Missing(jumps ...Jump) (missing []Jump, err error) {
	for _, j := range jumps {
		rules, err := c.Rules(j.Table, j.From)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(rules, func(rule string) bool { return jumpTarget(strings.Fields(rule)) == j.To }) {
			missing = append(missing, j)
		}
	}
	return missing, nil
}
