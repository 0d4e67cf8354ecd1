package thishost

import (
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestPreflightNamesOnlyProblems(t *testing.T) {
	problem := &step.Problem{Name: "swap", Text: "swap is on", Remedy: "turn it off"}
	for err, want := range map[error]string{
		problem:                    "PROBLEM\tlook: swap is on; turn it off [swap]\n",
		errors.New("no such file"): "PROBLEM\tlook: no such file\n",
	} {
		var table strings.Builder
		CheckedOf(step.Finding{Step: "look", Err: err}).Print(&table)
		if table.String() != want {
			t.Errorf("got %q, want %q", table.String(), want)
		}
	}
}
