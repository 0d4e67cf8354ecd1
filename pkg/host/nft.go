package host

import (
	"context"
	"encoding/json"
	"strings"
)

// NftTable is an nftables table with all its chains.
type NftTable struct {
	Family, Name string
	Body         string // the chains in the syntax of nft(8)
	Comment      string // of each rule; the version of the table: change it with the Body
}

// HasNftables reports whether nft(8) is installed and the kernel answers it.
func HasNftables(ctx context.Context) bool {
	if !HasProgram("nft") {
		return false
	}
	_, err := Run(ctx, "nft", "list", "tables")
	return err == nil
}

// HasNftTable reports whether the table exists and has all rules of t with
// t.Comment, i.e. was last written with the same Body.
func HasNftTable(ctx context.Context, t NftTable) (bool, error) {
	if !HasProgram("nft") {
		return false, nil
	}
	tables, err := Run(ctx, "nft", "list", "tables")
	if err != nil || !hasLine(tables, "table "+t.Family+" "+t.Name) {
		return false, err
	}
	text, err := Run(ctx, "nft", "list", "table", t.Family, t.Name)
	comment := `comment "` + t.Comment + `"`
	return strings.Count(text, comment) == strings.Count(t.Body, comment), err
}

// NftSet returns the elements of a set of addresses, in the order of nft(8).
func NftSet(ctx context.Context, family, table, name string) ([]string, error) {
	objects, err := nftList(ctx, "set "+family+" "+table+" "+name)
	for _, object := range objects {
		var set struct{ Elem []string }
		if err := json.Unmarshal(object["set"], &set); object["set"] != nil {
			return set.Elem, err
		}
	}
	return nil, err
}

func hasLine(text, line string) bool {
	return strings.Contains("\n"+text+"\n", "\n"+line+"\n")
}

// SetNftTable replaces the table, in one transaction.
func SetNftTable(ctx context.Context, t NftTable) error {
	name := t.Family + " " + t.Name
	// The first line ensures that the deletion does not fail.
	script := "add table " + name + "\ndelete table " + name + "\ntable " + name + " {\n" + t.Body + "\n}\n"
	_, err := Command{Args: []string{"nft", "-f", "-"}, Stdin: strings.NewReader(script)}.Run(ctx)
	return err
}

// DeleteNftTable deletes a table. A missing table is not an error.
func DeleteNftTable(ctx context.Context, family, name string) error {
	if !HasProgram("nft") {
		return nil
	}
	tables, err := Run(ctx, "nft", "list", "tables")
	if err != nil || !hasLine(tables, "table "+family+" "+name) {
		return err
	}
	_, err = Run(ctx, "nft", "delete", "table", family, name)
	return err
}

type nftChain struct{ Family, Table, Name, Hook, Policy string }

func (c nftChain) String() string { return c.Family + " " + c.Table + " " + c.Name }

// NftBaseChains lists the nftables base chains, "ip filter INPUT". The list
// is empty on a host without nft(8).
func NftBaseChains(ctx context.Context) ([]string, error) {
	if !HasProgram("nft") {
		return nil, nil
	}
	objects, err := nftList(ctx, "chains")
	var names []string
	for _, object := range objects {
		var c nftChain
		if json.Unmarshal(object["chain"], &c) == nil && c.Hook != "" {
			names = append(names, c.String())
		}
	}
	return names, err
}

// DeleteEmptyNftChain deletes a chain, such as "ip filter INPUT", that has no
// rules and accepts all packets: iptables-nft creates it with its first rule
// and never deletes it.
func DeleteEmptyNftChain(ctx context.Context, chain string) error {
	objects, err := nftList(ctx, "chain "+chain)
	if err != nil {
		return err
	}
	for _, object := range objects {
		body, isChain := object["chain"]
		if object["rule"] != nil || isChain && !acceptsAll(body) {
			return nil
		}
	}
	_, err = Run(ctx, append([]string{"nft", "delete", "chain"}, strings.Fields(chain)...)...)
	return err
}

func nftList(ctx context.Context, what string) ([]map[string]json.RawMessage, error) {
	text, err := Run(ctx, append([]string{"nft", "-j", "list"}, strings.Fields(what)...)...)
	if err != nil {
		return nil, err
	}
	var listing struct {
		Nftables []map[string]json.RawMessage `json:"nftables"`
	}
	err = json.Unmarshal([]byte(text), &listing)
	return listing.Nftables, err
}
