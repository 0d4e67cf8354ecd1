package host

import (
	"context"
	"strings"
)

// NftTable is one nftables table as a whole, "inet kube-bootstrap" with its
// chains in the language of nft(8).
type NftTable struct {
	Family, Name string
	Body         string // what stands between the braces
	Comment      string // found again by HasNftTable: change it with the Body
}

// HasNftTable reports whether the table is there as it was set, which its
// comment tells.
func HasNftTable(ctx context.Context, t NftTable) (bool, error) {
	if !HasProgram("nft") {
		return false, nil
	}
	tables, err := Run(ctx, "nft", "list", "tables")
	if err != nil || !hasLine(tables, "table "+t.Family+" "+t.Name) {
		return false, err
	}
	text, err := Run(ctx, "nft", "list", "table", t.Family, t.Name)
	return strings.Contains(text, `comment "`+t.Comment+`"`), err
}

func hasLine(text, line string) bool {
	return strings.Contains("\n"+text+"\n", "\n"+line+"\n")
}

// SetNftTable makes the table exactly this one, in one transaction.
func SetNftTable(ctx context.Context, t NftTable) error {
	name := t.Family + " " + t.Name
	// The first line makes sure that there is something to delete.
	script := "add table " + name + "\ndelete table " + name + "\ntable " + name + " {\n" + t.Body + "\n}\n"
	_, err := Command{Args: []string{"nft", "-f", "-"}, Stdin: strings.NewReader(script)}.Run(ctx)
	return err
}

// DeleteNftTable removes a table; one that is not there is no error.
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
