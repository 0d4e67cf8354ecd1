package netfilter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// NftTable is an nftables table with all its chains.
type NftTable struct {
	Name    string // with its family: "inet kube-bootstrap"
	Body    string // the chains in the syntax of nft(8)
	Comment string // of each rule; the version of the table: change it with the Body
}

// NftTables lists the nftables tables of this host, "ip filter"; none without nftables.
func NftTables(context.Context) ([]string, error) {
	tables, _, err := kernelTables()
	return tables, err
}

// FindNftTables lists the nftables tables of this host. supported is false if none can be
// written: without nft(8), or if the kernel has no nf_tables.
func FindNftTables(context.Context) (tables []string, supported bool, err error) {
	tables, supported, err = kernelTables()
	return tables, supported && host.HasProgram("nft"), err
}

// noNfTables are the answers of a kernel without nf_tables to a list: nft(8) has no exit
// code for it. nfnetlink returns the last one for a subsystem that it does not know.
var noNfTables = []string{"Protocol not supported", "Operation not supported", "Invalid argument"}

// unlessUnsupported returns nil instead of the error of a list if the kernel has no nf_tables.
func unlessUnsupported(err error) error {
	var failed *host.CommandError
	if errors.As(err, &failed) &&
		slices.ContainsFunc(noNfTables, func(answer string) bool { return strings.Contains(failed.Output, answer) }) {
		return nil
	}
	return err
}

// ReadNftTable returns the elements of the sets of addresses of a table, in the
// order of nft(8). whole reports whether the table exists and has all rules of t
// with t.Comment, i.e. was last written with the same Body.
func ReadNftTable(ctx context.Context, t NftTable) (sets map[string][]string, whole bool, err error) {
	objects, err := nftList(ctx, "table "+t.Name)
	if err != nil {
		return nil, false, t.unlessMissing(ctx, err)
	}
	sets, rules := map[string][]string{}, 0
	for _, object := range objects {
		var set struct {
			Name string
			Elem []string
		}
		if object["set"] != nil && json.Unmarshal(object["set"], &set) == nil {
			sets[set.Name] = set.Elem
		}
		var rule struct{ Comment string }
		if object["rule"] != nil && json.Unmarshal(object["rule"], &rule) == nil && rule.Comment == t.Comment {
			rules++
		}
	}
	return sets, rules == strings.Count(t.Body, `comment "`+t.Comment+`"`), nil
}

// SetNftTable creates or replaces the table, in one transaction.
func SetNftTable(ctx context.Context, t NftTable) error {
	return loadNft(ctx, "add table "+t.Name+"\n"+t.replacement()) // the deletion of a missing table would fail
}

// ReplaceNftTable replaces the table, in one transaction. A missing table is not
// an error and stays missing, also if it is deleted meanwhile.
func ReplaceNftTable(ctx context.Context, t NftTable) error {
	return t.unlessMissing(ctx, loadNft(ctx, t.replacement()))
}

// unlessMissing returns nil instead of the error of a table that does not exist.
func (t NftTable) unlessMissing(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if tables, listErr := NftTables(ctx); listErr == nil && !slices.Contains(tables, t.Name) {
		return nil
	}
	return err
}

func (t NftTable) replacement() string {
	return "delete table " + t.Name + "\ntable " + t.Name + " {\n" + t.Body + "\n}\n"
}

func loadNft(ctx context.Context, script string) error {
	_, err := host.Command{Args: []string{"nft", "-f", "-"}, Stdin: strings.NewReader(script)}.Run(ctx)
	return err
}

// DeleteNftTable deletes a table, "ip kube-proxy". A missing table is not an error.
func DeleteNftTable(ctx context.Context, name string) error {
	tables, err := NftTables(ctx)
	if err != nil || !slices.Contains(tables, name) {
		return err
	}
	if !host.HasProgram("nft") {
		return missingProblem("nft", "the kernel has the table "+name+", but this host")
	}
	_, err = host.Run(ctx, "nft", "delete", "table", name) // nft(8) joins its arguments
	return err
}

type nftChain struct{ Family, Table, Name, Hook, Policy string }

// NftBaseChains lists the nftables base chains, "ip filter INPUT"; none without nftables.
func NftBaseChains(ctx context.Context) ([]string, error) {
	if !host.HasProgram("nft") {
		return nil, nil
	}
	objects, err := nftList(ctx, "chains")
	if err != nil {
		return nil, unlessUnsupported(err)
	}
	var names []string
	for _, object := range objects {
		var c nftChain
		if json.Unmarshal(object["chain"], &c) == nil && c.Hook != "" {
			names = append(names, c.Family+" "+c.Table+" "+c.Name)
		}
	}
	return names, nil
}

// DeleteEmptyNft deletes each table, such as "ip mangle", that contains no rule and no
// set, or each chain, such as "ip filter INPUT", that has no rules and accepts all
// packets. iptables-nft creates a table by listing it, and a chain with its first rule,
// and never deletes them. kind is "table" or "chain". Without nft(8) they stay.
func DeleteEmptyNft(ctx context.Context, kind string, names []string) error {
	if len(names) == 0 || !host.HasProgram("nft") {
		return nil
	}
	objects, err := nftList(ctx, "ruleset")
	if err != nil {
		return err
	}
	used := nftUsed(objects)
	var deletions strings.Builder
	for _, name := range names {
		if !used[name] {
			fmt.Fprintf(&deletions, "delete %s %s\n", kind, name)
		}
	}
	if deletions.Len() == 0 {
		return nil
	}
	return loadNft(ctx, deletions.String())
}

// nftUsed returns the tables and chains that have an effect.
func nftUsed(objects []map[string]json.RawMessage) map[string]bool {
	used := map[string]bool{}
	for _, object := range objects {
		for kind, body := range object {
			var in struct{ Family, Table, Chain, Name string }
			if kind == "metainfo" || kind == "table" || json.Unmarshal(body, &in) != nil || kind == "chain" &&
				acceptsAll(body) {
				continue
			}
			if kind == "chain" {
				in.Chain = in.Name
			}
			used[in.Family+" "+in.Table] = true
			used[in.Family+" "+in.Table+" "+in.Chain] = true
		}
	}
	return used
}

// acceptsAll reports whether an empty chain lets all packets pass.
func acceptsAll(chain json.RawMessage) bool {
	var c nftChain
	return json.Unmarshal(chain, &c) == nil && c.Hook != "" && c.Policy != "drop"
}

func nftList(ctx context.Context, what string) ([]map[string]json.RawMessage, error) {
	text, err := host.Run(ctx, "nft", "-j", "list", what)
	if err != nil {
		return nil, err
	}
	var listing struct {
		Nftables []map[string]json.RawMessage `json:"nftables"`
	}
	err = json.Unmarshal([]byte(text), &listing)
	return listing.Nftables, err
}
