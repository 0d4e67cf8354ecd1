package offline

import (
	"errors"
	"io/fs"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// loadingPath is a file that exists while images are loaded, and after an
// interrupted load. Then a required name may still refer to an older image in the store.
func (l loading) loadingPath() string { return l.path() + ".loading" }

func (l loading) path() string {
	name := strings.ToLower(strings.TrimSpace(string(l.into.Kind()) + " " + l.Part))
	return host.StateDir + "/images/" + strings.ReplaceAll(name, " ", "-")
}

// record is the file that lists the references that we have loaded.
func (l loading) record() host.Record[[]string] {
	return host.Record[[]string]{Path: l.path() + ".json", Valid: validRefs}
}

func validRefs(refs []string) error {
	for _, ref := range refs {
		if _, err := name.ParseReference(ref); err != nil {
			return err
		}
	}
	return nil
}

// recorded returns the references that we have loaded. If the record is damaged,
// these are all references that we load; if it is missing, none.
func (l loading) recorded() ([]string, error) {
	refs, err := l.record().Read(l.Files)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case host.IsDamaged(err):
		return l.wantedRefs(), nil
	}
	return refs, err
}

func (l loading) wantedRefs() (refs []string) {
	for _, i := range l.Images {
		if i.In(l.into.Kind()) {
			refs = append(refs, i.Ref)
		}
	}
	return refs
}

// recordDiff returns what is wrong with the record, if there is one.
func (l loading) recordDiff() (step.Diff, error) {
	if !l.Files.Exists(l.record().Path) {
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
	return l.record().Write(l.Files, l.wantedRefs())
}

// begin records the images before they are loaded, so that Undo also removes them
// after an interrupted load.
func (l loading) begin(images []bundle.Image) error {
	if l.KeepImages {
		return nil
	}
	refs, err := l.recorded()
	if err != nil {
		return err
	}
	if err := l.Files.Write(l.loadingPath(), nil, 0o600); err != nil {
		return err
	}
	for _, ref := range bundle.References(images) {
		if !slices.Contains(refs, ref) {
			refs = append(refs, ref)
		}
	}
	return l.record().Write(l.Files, refs)
}

func (l loading) finish() error { return l.Files.Remove(l.loadingPath()) }
