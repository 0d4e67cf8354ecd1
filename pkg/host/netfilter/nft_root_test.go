//go:build root

package netfilter

import (
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestReplaceNftTable: only SetNftTable creates a table.
func TestReplaceNftTable(t *testing.T) {
	hosttest.InNetns(t)
	table := func(version string) NftTable {
		return NftTable{Name: "inet of-test", Comment: version, Body: "\tchain a {\n\t\tct state invalid drop comment \"" + version + "\"\n\t}"}
	}
	want := func(version string, exists bool) {
		t.Helper()
		if _, has, err := ReadNftTable(t.Context(), table(version)); err != nil || has != exists {
			t.Errorf("version %s exists: %t, %v; want %t", version, has, err, exists)
		}
	}
	if err := ReplaceNftTable(t.Context(), table("1")); err != nil {
		t.Error(err)
	}
	want("1", false)
	must.NoError(t, SetNftTable(t.Context(), table("2")))
	want("2", true)
	if err := ReplaceNftTable(t.Context(), table("3")); err != nil {
		t.Error(err)
	}
	want("2", false)
	want("3", true)
	broken := table("4")
	broken.Body = "\tchain a {\n\t\tnonsense\n\t}"
	if err := ReplaceNftTable(t.Context(), broken); err == nil {
		t.Error("a table that nft refuses is no error")
	}
	want("3", true)
}

// iptables creates chains and tables that it never deletes.
func TestDeleteEmptyNft(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, `iptables -A INPUT -j ACCEPT
		iptables -D INPUT -j ACCEPT
		iptables -A FORWARD -j ACCEPT
		iptables -t nat -A OUTPUT -j ACCEPT
		iptables -t nat -D OUTPUT -j ACCEPT`)
	must.NoError(t, DeleteEmptyNft(t.Context(), "table", []string{"ip filter", "ip nat"}))
	must.NoError(t, DeleteEmptyNft(t.Context(), "chain", []string{"ip filter INPUT", "ip filter FORWARD"}))
	tables, err := NftTables(t.Context())
	must.NoError(t, err)
	chains, err := NftBaseChains(t.Context())
	must.NoError(t, err)
	if !slices.Equal(tables, []string{"ip filter"}) || !slices.Equal(chains, []string{"ip filter FORWARD"}) {
		t.Errorf("left: tables %q, chains %q", tables, chains)
	}
}
