package netfilter

import (
	"errors"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// OfIptables reports whether a table or chain, "ip filter INPUT", belongs to a table of iptables.
func OfIptables(name string) bool {
	family, rest, _ := strings.Cut(name, " ")
	table, _, _ := strings.Cut(rest, " ")
	return (family == "ip" || family == "ip6") && slices.Contains([]string{"filter", "nat", "mangle", "raw"}, table)
}

// needed are the programs without which rules in the kernel cannot be read and removed.
var needed = map[string]string{"iptables": "iptables", "nft": "nftables"}

// MissingProblems returns a problem for each program of the firewall that this host lacks [program-missing].
func MissingProblems() error {
	var errs []error
	for name := range needed {
		if !host.HasProgram(name) {
			errs = append(errs, missingProblem(name, "this host"))
		}
	}
	return errors.Join(errs...)
}

func missingProblem(program, lacks string) error {
	return &step.Problem{Name: "program-missing",
		Text:   lacks + " has no program " + program + ", which reads and changes firewall rules",
		Remedy: "install the package " + needed[program]}
}

// UnreadProblem returns the problem that the kernel has rules of iptables which no program of
// this host can read [program-missing].
func UnreadProblem() error {
	if host.HasProgram("iptables") {
		return nil
	}
	return withoutIptables()
}

func withoutIptables() error {
	tables, _, err := kernelTables()
	if err != nil {
		return err
	}
	if HasLegacyRules() || slices.ContainsFunc(tables, OfIptables) {
		return missingProblem("iptables", "the kernel has rules of iptables, but this host")
	}
	return nil
}
