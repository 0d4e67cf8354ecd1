package image

import (
	"archive/tar"
	"io"
	"path"
	"slices"
	"strings"
)

// merged are the directories that Debian moved below /usr. Images do it or do
// not; laid together they must agree.
var merged = []string{"bin", "sbin", "lib", "lib64"}

// overlay lays a packed layer over what is there, as a container engine does.
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
			return nil // a link to a directory stays, and so does what others lie in
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

// remove takes away what a layer says is gone: a name and all below it, or all
// that lies in a directory.
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

// mergedName is where a file lies once the directories are merged.
func mergedName(name string) string {
	first, rest, below := strings.Cut(name, "/")
	if below && slices.Contains(merged, first) {
		return "usr/" + first + "/" + rest
	}
	return name
}

// mergedTarget is what a link points to once it lies elsewhere: a symbolic one
// that climbed keeps its target by the whole path.
func mergedTarget(from, to string, h *tar.Header) string {
	switch {
	case h.Typeflag == tar.TypeLink:
		return mergedName(path.Clean("/" + h.Linkname)[1:])
	case h.Typeflag == tar.TypeSymlink && from != to && strings.HasPrefix(h.Linkname, "../"):
		return path.Join("/", path.Dir(from), h.Linkname)
	}
	return h.Linkname
}

// mergedLinks makes the old names lead to the new places.
func mergedLinks(all map[string]entry) {
	for _, dir := range merged {
		if holds(all, "usr/"+dir) {
			addLink(all, dir, "usr/"+dir)
		}
	}
}
