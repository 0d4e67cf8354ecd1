package host

import "github.com/coreos/go-iptables/iptables"

// HasChain reports whether a chain of iptables is there.
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
