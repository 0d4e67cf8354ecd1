//go:build root

package cluster

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheStatusOfNodesThatAreNoContainers(t *testing.T) {
	options, _ := machinesOf(t)
	all, err := Status(t.Context(), options, "")
	must.NoError(t, err)
	if len(all) != 2 || string(all[0].Report) != "{\"upToDate\": true}\n" || all[1].Report != nil ||
		all[1].State != "off" {
		t.Errorf("got %+v", all)
	}
	one, err := Status(t.Context(), options, "attic")
	if err != nil || len(one) != 1 || one[0].Name != "k-attic" {
		t.Errorf("got %+v, %v", one, err)
	}
}
