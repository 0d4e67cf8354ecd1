package tokens

import (
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
)

func TestTheHostsThatATokenIsFor(t *testing.T) {
	for name, c := range map[string]struct {
		scope join.Scope
		named bool // --node is given
		want  string
	}{
		"any worker":    {join.Scope{Kind: join.ForWorker}, false, ""},
		"one worker":    {join.Scope{Kind: join.ForWorker, Node: "web-1.example.com"}, true, ""},
		"control plane": {join.Scope{Kind: join.ForControlPlane}, false, ""},
		"both": {
			join.Scope{Kind: join.ForControlPlane, Node: "web"}, true, "leave out --node or --control-plane",
		},
		"one and several": {
			join.Scope{Kind: join.ForWorker, Node: "web", Reusable: true}, true, "leave out --node or --reusable",
		},
		"no name":    {join.Scope{Kind: join.ForWorker}, true, `--node "": `},
		"upper case": {join.Scope{Kind: join.ForWorker, Node: "Web"}, true, `--node "Web": `},
	} {
		err := checkScope(c.scope, c.named)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestTheListOfTokens(t *testing.T) {
	now := time.Now()
	for want, token := range map[string]join.Token{
		"-      - none      never": {},
		"worker - one       in 59m0s": {
			Scope: join.Scope{Kind: join.ForWorker}, Expires: now.Add(59*time.Minute + 20*time.Second),
		},
		"worker a one       in 2h0m0s": {
			Scope: join.Scope{Kind: join.ForWorker, Node: "a"}, Expires: now.Add(2 * time.Hour),
		},
		"worker b used      expired": {
			Scope: join.Scope{Kind: join.ForWorker}, UsedBy: "b", Expires: now.Add(-time.Second),
		},
		"worker - unlimited in 24h0m0s": {
			Scope: join.Scope{Kind: join.ForWorker, Reusable: true}, Expires: now.Add(24 * time.Hour),
		},
	} {
		var cells []string
		for _, column := range tokenColumns[1:5] {
			cells = append(cells, column.Cell(token))
		}
		if got := strings.Join(cells, " "); got != strings.Join(strings.Fields(want), " ") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
