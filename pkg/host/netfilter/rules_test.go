package netfilter

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestChangesOfRules: they precede the rules of others, or follow them but for a final RETURN, and outdated
// ones are deleted after all additions.
func TestChangesOfRules(t *testing.T) {
	user, raw := Place{"filter", "DOCKER-USER"}, Place{"raw", "PREROUTING"}
	marked := func(at Place, last bool, comment string, match ...string) Rule {
		return Rule{At: at, Last: last, Spec: append(match, "-m", "comment", "--comment", comment, "-j", "ACCEPT")}
	}
	wanted := []Rule{
		marked(user, false, "own: a", "-i", "flannel.1"), marked(user, true, "own: b", "-o", "docker0"),
		marked(raw, false, "own: a", "-i", "flannel.1"),
	}
	read := func(user, raw []string) *Chains {
		return &Chains{read: map[[2]string][]string{{"filter", "DOCKER-USER"}: user, {"raw", "PREROUTING"}: raw}}
	}
	old := `-A DOCKER-USER -i old -m comment --comment "own: a" -j ACCEPT`
	for name, c := range map[string]struct {
		is   *Chains
		want string
	}{
		"none": {read(nil, []string{"-P PREROUTING ACCEPT"}), `*filter
:DOCKER-USER - [0:0]
-I DOCKER-USER 1 -i flannel.1 -m comment --comment "own: a" -j ACCEPT
-I DOCKER-USER 2 -o docker0 -m comment --comment "own: b" -j ACCEPT
COMMIT
*raw
-I PREROUTING 1 -i flannel.1 -m comment --comment "own: a" -j ACCEPT
COMMIT
`},
		"others": {read(
			[]string{"-N DOCKER-USER", "-A DOCKER-USER -s 192.0.2.1/32 -j DROP", old, "-A DOCKER-USER -j RETURN"},
			[]string{"-P PREROUTING ACCEPT", `-A PREROUTING -i flannel.1 -m comment --comment "own: a" -j ACCEPT`},
		), `*filter
-I DOCKER-USER 1 -i flannel.1 -m comment --comment "own: a" -j ACCEPT
-I DOCKER-USER 4 -o docker0 -m comment --comment "own: b" -j ACCEPT
COMMIT
*filter
-D DOCKER-USER -i old -m comment --comment "own: a" -j ACCEPT
COMMIT
`},
	} {
		got, err := c.is.changes("own: ", wanted, []Place{user, raw})
		must.NoError(t, err)
		if got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, c.want)
		}
	}
	if got, err := read(nil, nil).changes("own: ", nil, []Place{user, raw}); got != "" || err != nil {
		t.Errorf("nothing to change: %q, %v", got, err)
	}
}
