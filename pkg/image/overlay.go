package image

import (
	"archive/tar"
	"io"
	"path"
	"slices"
	"strings"
)

// merged are the directories that Debian moved below /usr. Some images have
// not moved them, so overlay moves them in all.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// overlay applies a compressed layer to the entries of lower layers, as a
// container engine does.
func overlay(all map[string]entry, layer string) error {
	return eachMember(layer, func(name string, h *tar.Header, r io.Reader) error {
		dir, base := path.Split(name)
		if gone, ok := strings.CutPrefix(base, ".wh."); ok {
			remove(all, mergedName(dir+gone), base == ".wh..wh..opq", mergedName(strings.TrimSuffix(dir, "/")))
			return nil
		}
		to := mergedName(name)
		if name == "" || slices.Contains(merged, name) || isUnwanted(to) {
			return nil
		}
		old, there := all[to]
		if there && (h.Typeflag == tar.TypeDir || old.header.Typeflag == tar.TypeDir && holds(all, to)) {
			return nil // a link to a directory stays, and so does a directory with entries
		}
		data, err := io.ReadAll(r)
		if err != nil {
			return err
		}
		e := entry{header: *h, data: data}
		e.header.Linkname = mergedTarget(name, to, h)
		all[to] = e
		return nil
	})
}

// remove applies a whiteout: it removes a name and all entries below it, or
// the entries in an opaque directory.
func remove(all map[string]entry, name string, opaque bool, dir string) {
	if opaque {
		name = dir
	} else {
		delete(all, name)
	}
	for other := range all {
		if strings.HasPrefix(other, name+"/") {
			delete(all, other)
		}
	}
}

func holds(all map[string]entry, dir string) bool {
	for name := range all {
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

// mergedTarget returns the target of a moved link. A relative symbolic link
// becomes absolute.
func mergedTarget(from, to string, h *tar.Header) string {
	switch {
	case h.Typeflag == tar.TypeLink:
		return mergedName(path.Clean("/" + h.Linkname)[1:])
	case h.Typeflag == tar.TypeSymlink && from != to && strings.HasPrefix(h.Linkname, "../"):
		return path.Join("/", path.Dir(from), h.Linkname)
	}
	return h.Linkname
}

// mergedLinks adds links from the old directories to the new ones.
func mergedLinks(all map[string]entry) {
	for _, dir := range merged {
		if holds(all, "usr/"+dir) {
			addLink(all, dir, "usr/"+dir)
		}
	}
}
