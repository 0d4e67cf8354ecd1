package offline

import (
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// record is what a store has from us, by reference.
type record struct {
	Loaded []string `json:"loaded"`
	// Loading is noted before it is loaded, so that Undo also finds it when that
	// is cut short. The store may have an older image under such a name.
	Loading []string `json:"loading,omitempty"`
}

func (r record) all() []string { return slices.Concat(r.Loaded, r.Loading) }

func (l loading) recordPath() string {
	name := strings.ToLower(strings.TrimSpace(string(l.into.Kind()) + " " + l.Part))
	return host.StateDir + "/images/" + strings.ReplaceAll(name, " ", "-") + ".json"
}

func (l loading) recorded() (r record, err error) {
	_, err = l.Files.Recall(l.recordPath(), &r)
	return r, err
}

// begin notes what is about to be loaded, finish that it has been, and forget
// that it is there no more.
func (l loading) begin(refs []string) error {
	return l.note(refs, func(r *record) { r.Loading = append(r.Loading, refs...) })
}

func (l loading) finish(refs []string) error {
	return l.note(refs, func(r *record) { r.Loaded = append(r.Loaded, refs...) })
}

func (l loading) forget(refs []string) error {
	return l.note(refs, func(*record) {})
}

func (l loading) note(refs []string, where func(*record)) error {
	if l.KeepImages {
		return nil
	}
	r, err := l.recorded()
	if err != nil {
		return err
	}
	noted := func(ref string) bool { return slices.Contains(refs, ref) }
	r.Loaded, r.Loading = slices.DeleteFunc(r.Loaded, noted), slices.DeleteFunc(r.Loading, noted)
	where(&r)
	return l.Files.Remember(l.recordPath(), r)
}
