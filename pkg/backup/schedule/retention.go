package schedule

import (
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

// Retained is what the retention decides about a place.
type Retained struct {
	Remove []Begun // files that are no longer wanted
	Gone   []Begun // entries of the State without a good file
}

// Retain compares the State with the files of a place, as a control plane sees them. Only backups of the State that
// are unchanged since they were read again count, and the newest keep of them stay. Files of others are never
// removed, nor is a backup that has changed since. The directories of other control planes are not seen, so their
// backups stay in the State.
func (s State) Retain(files []backup.File, to, host string, keep int) (r Retained) {
	all := byName(files)
	good := []Begun{}
	for _, b := range s.Backups {
		file, found := all[b.Name]
		switch {
		case b.To != to:
		case found && file.Size == b.Size && file.Version == b.Version:
			good = append(good, b.Begun)
		case found || b.seenBy(host):
			r.Gone = append(r.Gone, b.Begun)
		}
	}
	r.Remove = slices.Clone(good[:max(0, len(good)-keep)])
	for _, b := range s.Begun {
		if _, found := all[b.Name]; b.To == to && (found || b.seenBy(host)) {
			r.Remove = append(r.Remove, b)
		}
	}
	return r
}

// InBucket reports whether all hosts see the same file.
func (b Begun) InBucket() bool { return backup.InBucket(b.To) }

// seenBy reports whether a host would see the file if it existed.
func (b Begun) seenBy(host string) bool { return b.InBucket() || b.Host == host }

func byName(files []backup.File) map[string]backup.File {
	all := map[string]backup.File{}
	for _, f := range files {
		all[f.Name] = f
	}
	return all
}
