package offline

import (
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// recordPath is the file of the references that a store has from us.
func (l loading) recordPath() string { return l.path() + ".json" }

// underWayPath is there from before something is loaded until all of it has
// been. As long as it is, a store may have an older image under a name of ours.
func (l loading) underWayPath() string { return l.path() + ".loading" }

func (l loading) path() string {
	name := strings.ToLower(strings.TrimSpace(string(l.into.Kind()) + " " + l.Part))
	return host.StateDir + "/images/" + strings.ReplaceAll(name, " ", "-")
}

func (l loading) recorded() (refs []string, err error) {
	_, err = l.Files.Recall(l.recordPath(), &refs)
	return refs, err
}

// begin notes what is about to be loaded, so that Undo also finds it when that
// is cut short.
func (l loading) begin(entries []Entry) error {
	if l.KeepImages {
		return nil
	}
	refs, err := l.recorded()
	if err != nil {
		return err
	}
	if err := l.Files.Write(l.underWayPath(), nil, 0o600); err != nil {
		return err
	}
	for _, ref := range references(entries) {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return l.Files.Remember(l.recordPath(), refs)
}

func (l loading) finish() error { return l.Files.Remove(l.underWayPath()) }
