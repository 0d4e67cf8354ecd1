//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// mostFailures is what the hosts may fail of the CIS Kubernetes Benchmark 1.11,
// automated and manual controls together. kubeadm fails 48.
const mostFailures = 14

// control is a recommendation of the benchmark. Those that concern an etcd in a
// static pod (1.1.7, 1.1.8) and a kubelet that systemd starts (4.1.1 to 4.1.4) do
// not apply; those of section 5 that only name a duty of the user have no test.
type control struct {
	id, title string
	host      string // "master", "worker", or "" for both
	passes    string // a shell command, see cisShell
	why       string // the reason of a failure that docs/security.md explains
}

// cisShell has the functions of the table: `has COMPONENT REGEXP` looks for an
// argument, `setting REGEXP` for a line of the kubelet's configuration, `private
// FILE...` for modes and owners, `refused YAML` for a pod that the API refuses.
const cisShell = `
D=$(mktemp -d); trap 'rm -r $D' EXIT
for p in /proc/[0-9]*; do tr '\0' '\n' <$p/cmdline 2>/dev/null | { read -r a && cat >>"$D/${a##*/}"; }; done
args() { cat "$D/$1" 2>/dev/null; }
has() { args "$1" | grep -qE -- "$2"; }
lacks() { ! has "$1" "$2" && args "$1" | grep -q .; }
setting() { grep -qE -- "$1" /var/lib/kubelet/config.yaml; }
private() { for f in "$@"; do [ -e "$f" ] || continue
	case $(stat -Lc %a:%U:%G "$f") in [0-7]00:root:root) ;; *) return 1;; esac; done; }
owned() { [ -z "$(find "$@" \( ! -user root -o ! -group root \) -print -quit)" ]; }
refused() { kc create --dry-run=server -f - >/dev/null 2>&1 <<EOF && return 1 || return 0
{apiVersion: v1, kind: Pod, metadata: {name: cis, namespace: default}, spec: {$1}}
EOF
}
kc() { docker exec -i kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf "$@"; }
container() { echo "containers: [{name: a, image: a, securityContext: {$1}}]"; }
K=/etc/kubernetes
`

// cis prints the table of the benchmark, and fails where a result is not the
// documented one.
func cis(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	page := must.Read(t, "../../docs/security.md")
	var table strings.Builder
	failures := 0
	failing := failingControls(t, master, worker)
	for _, c := range controls {
		failed := failing[c.id]
		if failed != "" {
			failures++
		}
		fmt.Fprintf(&table, "%-7s %-4s %s%s\n", c.id, map[bool]string{true: "pass", false: "FAIL"}[failed == ""],
			c.title, failed)
		if (failed != "") != (c.why != "") {
			t.Errorf("%s %s: failed on %q, but the expected reason is %q", c.id, c.title, failed, c.why)
		}
		if c.why != "" && !strings.Contains(string(page), "| "+c.id+" |") {
			t.Errorf("docs/security.md does not explain %s", c.id)
		}
	}
	t.Logf("CIS Kubernetes Benchmark 1.11: %d of %d controls fail\n%s", failures, len(controls), table.String())
	if failures > mostFailures {
		t.Errorf("%d controls fail, at most %d may", failures, mostFailures)
	}
}

// failingControls returns the controls that fail, each with the names of its hosts. It repeats a
// control that fails without a documented reason: a busy API server may not be ready for a moment.
func failingControls(t *testing.T, master, worker hosts.Machine) map[string]string {
	t.Helper()
	failing := map[string]string{}
	for kind, m := range map[string]hosts.Machine{"master": master, "worker": worker} {
		mine := slices.DeleteFunc(slices.Clone(controls),
			func(c control) bool { return c.host != "" && c.host != kind })
		const times, pause = 12, 5 * time.Second
		for range times {
			documented, others := failingOn(t, m, mine)
			for _, c := range documented {
				failing[c.id] += " (" + m.Name + ")"
			}
			if mine = others; len(mine) == 0 {
				break
			}
			time.Sleep(pause)
		}
		for _, c := range mine {
			failing[c.id] += " (" + m.Name + ")"
		}
	}
	return failing
}

// failingOn runs the command of each control on a host. It returns two lists of the controls that
// fail: those whose reason is documented, and the others.
func failingOn(t *testing.T, m hosts.Machine, tried []control) (documented, others []control) {
	t.Helper()
	script := cisShell
	for _, c := range tried {
		script += "(\n" + c.passes + "\n) >/dev/null 2>&1 </dev/null || echo " + c.id + "\n"
	}
	ids := strings.Fields(m.Sh(t, script))
	for _, c := range tried {
		switch {
		case !slices.Contains(ids, c.id):
		case c.why != "":
			documented = append(documented, c)
		default:
			others = append(others, c)
		}
	}
	return documented, others
}
