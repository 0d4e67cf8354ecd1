package host

import "path/filepath"

// ExistsMatch reports whether a path matches a shell pattern,
// "/etc/rc2.d/S*name".
func (f Files) ExistsMatch(pattern string) bool {
	return len(f.Match(pattern)) > 0
}

// Match returns the host's paths that match a shell pattern.
func (f Files) Match(pattern string) []string {
	found, err := filepath.Glob(f.Path(pattern))
	if err != nil {
		return nil
	}
	root := f.Path("/")
	for i, path := range found {
		if rel, err := filepath.Rel(root, path); err == nil {
			found[i] = "/" + rel
		}
	}
	return found
}
