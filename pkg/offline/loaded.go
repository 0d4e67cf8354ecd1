package offline

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
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

func (l loading) record() host.Record[[]string] {
	return host.Record[[]string]{Path: l.recordPath(), Valid: validRefs}
}

func validRefs(refs []string) error {
	for _, ref := range refs {
		if _, err := name.ParseReference(ref); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the references that the store has from us. Where the record
// is damaged, that is all that we load; where it is missing, none.
func (l loading) recorded() ([]string, error) {
	refs, err := l.record().Read(l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		return l.wanted(), nil
	}
	return refs, err
}

func (l loading) wanted() (refs []string) {
	for _, i := range l.Images {
		if i.In(l.into.Kind()) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

// recordDiff asks for a usable record where there is one.
func (l loading) recordDiff() (step.Diff, error) {
	if !l.Files.Exists(l.recordPath()) {
		return nil, nil
	}
	return l.record().Diff(l.Files)
}

// repairRecord replaces a damaged record.
func (l loading) repairRecord() error {
	diff, err := l.recordDiff()
	if err != nil || len(diff) == 0 {
		return err
	}
	return l.record().Write(l.Files, l.wanted())
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
	return l.record().Write(l.Files, refs)
}

func (l loading) finish() error { return l.Files.Remove(l.underWayPath()) }
