//go:build root

package netfilter

import (
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestTablesOfTheKernel: the kernel lists the same tables as nft(8).
func TestTablesOfTheKernel(t *testing.T) {
	hosttest.InNetns(t)
	if names, supported, err := kernelTables(); len(names) > 0 || !supported || err != nil {
		t.Fatalf("a new namespace: %q, %t, %v", names, supported, err)
	}
	hosttest.Shell(t, "nft add table ip of-ip\nnft add table ip6 of-ip6\nnft add table inet of-inet\nnft add table arp of-arp\nnft add table bridge of-bridge\nnft add table netdev of-netdev")
	names, _, err := kernelTables()
	must.NoError(t, err)
	slices.Sort(names)
	if want := []string{"arp of-arp", "bridge of-bridge", "inet of-inet", "ip of-ip", "ip6 of-ip6", "netdev of-netdev"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

// TestRulesWithoutTheirProgram: a program that is not found is not a host without rules.
func TestRulesWithoutTheirProgram(t *testing.T) {
	hosttest.InNetns(t)
	all := func(string) bool { return true }
	undos := map[string]func() error{
		"chains":        func() error { return DeleteChains(t.Context(), all) },
		"all firewalls": func() error { return DeleteChainsEverywhere(t.Context(), "KUBE-") },
		"what is left":  func() error { _, err := ChainsEverywhere(t.Context(), "KUBE-"); return err },
		"table":         func() error { return DeleteNftTable(t.Context(), "inet of-test") },
	}
	hosttest.Shell(t, "iptables -t nat -N KUBE-A\nnft add table inet of-test")
	path := t.TempDir()
	t.Setenv("PATH", path)
	for name, undo := range undos {
		if problems := step.Problems(undo()); len(problems) != 1 || problems[0].Name != "program-missing" {
			t.Errorf("%s: got %v", name, problems)
		}
	}
	if problems := step.Problems(MissingProblems()); len(problems) != 2 {
		t.Errorf("preflight: got %v", problems)
	}
}

// TestNoProgramAndNoRules: nothing has ever made a rule on such a host.
func TestNoProgramAndNoRules(t *testing.T) {
	hosttest.InNetns(t)
	t.Setenv("PATH", t.TempDir())
	must.NoError(t, DeleteChains(t.Context(), func(string) bool { return true }))
	must.NoError(t, DeleteChainsEverywhere(t.Context(), "KUBE-"))
	must.NoError(t, DeleteNftTable(t.Context(), "inet of-test"))
	if left, err := ChainsEverywhere(t.Context(), "KUBE-"); len(left) > 0 || err != nil {
		t.Errorf("left %q, %v", left, err)
	}
}
