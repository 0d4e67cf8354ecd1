//go:build e2e

package long

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// freezeScript stops each program as soon as it runs, for some seconds, as on a host that is too slow
// for any limit. It ends by itself.
const freezeScript = `rm -f /run/frozen-*
for one in %s; do
	setsid sh -c '
		until pid=$(pgrep -ox "$1"); do sleep 0.05; done
		kill -STOP "$pid"; sleep "$2"; kill -CONT "$pid"; touch "/run/frozen-$1"
	' freeze ${one%%:*} ${one#*:} >/dev/null 2>&1 </dev/null &
done`

// freezeAtStart stops programs, such as "etcd:15", for so many seconds when they start.
func freezeAtStart(t *testing.T, m hosts.Machine, programs ...string) {
	t.Helper()
	m.Sh(t, fmt.Sprintf(freezeScript, strings.Join(programs, " ")))
}

// wereFrozen expects that freezeAtStart has stopped the programs.
func wereFrozen(t *testing.T, m hosts.Machine, programs ...string) {
	t.Helper()
	for _, one := range programs {
		name, _, _ := strings.Cut(one, ":")
		m.Sh(t, "ls /run/frozen-"+name+" && rm /run/frozen-"+name)
	}
}
