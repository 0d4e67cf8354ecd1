package netfilter

import (
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/coreos/go-iptables/iptables"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// lockSeconds is how long iptables waits for the lock of another program, such as
// kube-proxy, which holds it for less than a second.
const lockSeconds = 30

// opened contains each program by its path: iptables.New starts it to read the version.
var opened sync.Map

func open(path string) (*iptables.IPTables, error) {
	if ipt, ok := opened.Load(path); ok {
		return ipt.(*iptables.IPTables), nil
	}
	ipt, err := iptables.New(iptables.Path(path), iptables.Timeout(lockSeconds))
	if err != nil {
		return nil, err
	}
	opened.Store(path, ipt)
	return ipt, nil
}

// HasChain reports whether an iptables chain exists.
func HasChain(table, chain string) (bool, error) {
	chains, err := ReadChains()
	if err != nil || chains.ipt == nil {
		return false, err
	}
	return chains.ipt.ChainExists(table, chain)
}

// Chains reads the chains of one firewall of the kernel, each only once.
type Chains struct {
	ipt     *iptables.IPTables // nil without iptables
	program iptablesProgram
	read    map[[2]string][]string
}

// ReadChains reads the chains of the host's own iptables, none without iptables.
func ReadChains() (*Chains, error) {
	if !host.HasProgram("iptables") {
		return &Chains{program: iptablesProgram{path: "iptables"}}, nil
	}
	return chainsOf(iptablesProgram{path: "iptables"})
}

func chainsOf(program iptablesProgram) (*Chains, error) {
	ipt, err := open(program.path)
	return &Chains{ipt: ipt, program: program, read: map[[2]string][]string{}}, err
}

// AnyFirewall reports whether holds returns true for the IPv4 chains of nftables or of
// ip_tables: a container may use another one than the host.
func AnyFirewall(holds func(*Chains) (bool, error)) (bool, error) {
	for _, program := range iptablesPrograms() {
		if program.proto != iptables.ProtocolIPv4 {
			continue
		}
		chains, err := chainsOf(program)
		if err != nil {
			return false, err
		}
		if ok, err := holds(chains); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// incompatible is in the error of iptables-nft 1.8.9 for a chain that does not exist.
// https://github.com/moby/moby/pull/50841
const incompatible = "is incompatible, use 'nft' tool"

// Rules returns the rules of a chain as `iptables -S` prints them; none if it does not exist.
func (c *Chains) Rules(table, chain string) ([]string, error) {
	lines, err := c.lines(table, chain)
	if len(lines) > 0 {
		lines = lines[1:] // the first line is the chain itself
	}
	return lines, err
}

// lines returns what `iptables -S` prints about a chain; none if it does not exist.
func (c *Chains) lines(table, chain string) ([]string, error) {
	at := [2]string{table, chain}
	if lines, done := c.read[at]; done || c.ipt == nil || !c.program.has(table) {
		return lines, nil
	}
	lines, err := c.ipt.List(table, chain)
	var refused *iptables.Error
	if errors.As(err, &refused) && (refused.IsNotExist() || strings.Contains(refused.Error(), incompatible)) {
		lines, err = nil, nil
	}
	if err != nil {
		return nil, err
	}
	c.read[at] = lines
	return lines, nil
}

// Policy returns the policy of a built-in chain: ACCEPT or DROP. A chain that does not exist
// yet accepts.
func (c *Chains) Policy(table, chain string) (string, error) {
	lines, err := c.lines(table, chain)
	if len(lines) == 0 {
		return "ACCEPT", err
	}
	return strings.TrimPrefix(lines[0], "-P "+chain+" "), err
}

// SetPolicy sets the policy of a built-in chain.
func SetPolicy(table, chain, policy string) error {
	ipt, err := open("iptables")
	if err != nil {
		return err
	}
	return ipt.ChangePolicy(table, chain, policy)
}

// HasTable reports whether the kernel has a table, which contains a chain.
func (c *Chains) HasTable(table, chain string) bool {
	if lines, err := c.lines(table, chain); err == nil && len(lines) > 0 {
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

// Missing describes the jumps that do not exist.
func (c *Chains) Missing(jumps ...Jump) (missing []string, err error) {
	for _, j := range jumps {
		rules, err := c.Rules(j.Table, j.From)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(rules, func(rule string) bool { return jumpTarget(strings.Fields(rule)) == j.To }) {
			missing = append(missing, "the jump from "+j.From+" to "+j.To+" (table "+j.Table+")")
		}
	}
	return missing, nil
}
