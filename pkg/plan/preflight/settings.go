package preflight

import (
	"cmp"
	"context"
	"fmt"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// settingsProblem lists the given settings that cannot change on this host, or
// that differ from those of the cluster that the host joins.
func settingsProblem(_ context.Context, h request) error {
	var problems []*step.Problem
	for _, d := range h.Refused {
		whose, remedy := "this host was set up with", "leave it out, or run `kube-bootstrap turndown` and set this host up again"
		if d.Shared {
			whose, remedy = "the cluster has", "leave it out, as only a new cluster can have another value"
		}
		problems = append(problems, &step.Problem{
			Name: d.Flag, Firm: true, Remedy: remedy,
			Text: fmt.Sprintf("%s: %s (from %s), but %s %s", d.Field, cmp.Or(d.Given, "nothing"), d.From, whose, cmp.Or(d.InForce, "none")),
		})
	}
	return joinProblems(problems)
}
