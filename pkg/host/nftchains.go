package host

import (
	"context"
	"encoding/json"
	"strings"
)

type nftChain struct{ Family, Table, Name, Hook, Policy string }

func (c nftChain) String() string { return c.Family + " " + c.Table + " " + c.Name }

// NftBaseChains lists the nftables chains that the kernel itself enters, "ip
// filter INPUT". A host without nft(8) shows none.
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

// DeleteEmptyNftChain removes a chain, "ip filter INPUT", that holds no rule
// and accepts all: iptables makes it with its first rule there, and leaves it.
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
