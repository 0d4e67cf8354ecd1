package rootfs

import (
	"archive/tar"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// merged are the directories that Debian moved below /usr. Some images have
// not moved them, so Overlay moves them in all.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// Overlay applies a compressed layer to the entries of lower layers, as a
// container engine does, without the entries that unwanted reports.
func (t Tree) Overlay(layer string, unwanted func(name string) bool) error {
	return eachMember(layer, func(name string, h *tar.Header, r io.Reader) error {
		dir, base := path.Split(name)
		if gone, ok := strings.CutPrefix(base, ".wh."); ok {
			if base == ".wh..wh..opq" { // the directory is opaque
				t.removeBelow(mergedName(strings.TrimSuffix(dir, "/")))
				return nil
			}
			delete(t, mergedName(dir+gone))
			t.removeBelow(mergedName(dir + gone))
			return nil
		}
		to := mergedName(name)
		if name == "" || slices.Contains(merged, name) || unwanted(to) {
			return nil
		}
		old, there := t[to]
		if there && (h.Typeflag == tar.TypeDir || old.Header.Typeflag == tar.TypeDir && t.holds(to)) {
			return nil // a link to a directory stays, and so does a directory with entries
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		e := Entry{Header: *h, Data: data}
		e.Header.Linkname = mergedTarget(name, to, h)
		t[to] = e
		return nil
	})
}

func (t Tree) removeBelow(dir string) {
	maps.DeleteFunc(t, func(name string, _ Entry) bool { return strings.HasPrefix(name, dir+"/") })
}

func (t Tree) holds(dir string) bool {
	for name := range t {
		if strings.HasPrefix(name, dir+"/") {
			return true
		}
	}
	return false
}

// mergedName returns the name of a file after the directories were merged.
func mergedName(name string) string {
	first, rest, below := strings.Cut(name, "/")
	if below && slices.Contains(merged, first) {
		return "usr/" + first + "/" + rest
	}
	return name
}

// mergedTarget returns the target of a link. A moved relative one becomes absolute.
func mergedTarget(from, to string, h *tar.Header) string {
	switch {
	case h.Typeflag == tar.TypeLink:
		return mergedName(path.Clean("/" + h.Linkname)[1:])
	case h.Typeflag == tar.TypeSymlink && from != to && strings.HasPrefix(h.Linkname, "../"):
		return path.Join("/", path.Dir(from), h.Linkname) //nolint:gosec // the text of a link, which is not followed here
	}
	return h.Linkname
}

// LinkMerged adds links from the old directories to the new ones.
func (t Tree) LinkMerged() {
	for _, dir := range merged {
		if t.holds("usr/" + dir) {
			t.AddLink(dir, "usr/"+dir)
		}
	}
}
