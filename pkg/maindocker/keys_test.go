package maindocker

import (
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestEveryKeyOfDockerHasARow: testdata/daemon-keys.txt lists the keys that dockerd 29 reads, by the
// JSON names of Config in daemon/config of github.com/moby/moby. Each has a row in the docs, which
// says what the code does with it.
func TestEveryKeyOfDockerHasARow(t *testing.T) {
	rows := map[string]string{}
	for line := range strings.Lines(string(must.Read(t, "../../docs/docker-settings.md"))) {
		if cells := strings.Split(line, " | "); len(cells) == 3 && strings.HasPrefix(line, "| `") {
			rows[strings.Trim(cells[0], "|` ")] = cells[1]
		}
	}
	keys := strings.Fields(string(must.Read(t, "testdata/daemon-keys.txt")))
	for _, key := range keys {
		// The user can keep some values of a refused key.
		want := []string{"kept"}
		switch {
		case slices.Contains(ourKeys, key):
			want = []string{"merged"}
		case key == "bridge", key == "iptables":
			want = []string{"refused"}
		case refused[key] != nil:
			want = []string{"refused", "kept"}
		}
		if !slices.Contains(want, rows[key]) {
			t.Errorf("%s is %q in docs/docker-settings.md, and %q in the code", key, rows[key], want)
		}
	}
	for _, key := range ourKeys {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is no key of Docker", key)
		}
	}
}
