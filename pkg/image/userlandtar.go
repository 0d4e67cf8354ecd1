package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"time"
)

// entry is one member of a layer.
type entry struct {
	header tar.Header
	data   []byte
}

// unwanted is what no program at run time reads.
var unwanted = []string{"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/",
	"usr/share/perl5/", "usr/share/bash-completion/", "usr/share/zsh/", "usr/share/fish/", "usr/share/common-licenses/",
	"usr/share/doc-base/", "usr/share/pixmaps/", "usr/share/menu/", "usr/share/initramfs-tools/", "usr/share/debconf/",
	"usr/lib/systemd/", "usr/lib/udev/", "usr/include/", "usr/lib/mime/", "var/lib/apt/", "var/cache/", "var/lib/dpkg/", "dev/", "proc/", "sys/", "run/"}

// unwantedParts are of packages that are needed, for uses that never come here:
// character sets, a database for arpd and one for lastlog2, debuggers.
var unwantedParts = []string{"/gconv/", "/libdb-5.3.so", "/libsqlite3.so", "usr/sbin/arpd", "usr/bin/lastlog2", "usr/bin/openssl",
	"usr/sbin/debugfs", "usr/sbin/rdma", "usr/sbin/devlink", "/libmvec.so", packagesFile}

func isUnwanted(name string) bool {
	within := func(dir string) bool { return strings.HasPrefix(name+"/", dir) && name+"/" != dir }
	part := func(text string) bool { return strings.Contains(name, text) }
	return slices.ContainsFunc(unwanted, within) || slices.ContainsFunc(unwantedParts, part)
}

// tidyUserland turns an unpacked Debian (or any other file system) into a
// layer: what is not needed left out, what package scripts would have made
// added, the same bytes for the same input.
func tidyUserland(raw, out string) error {
	file, err := os.Open(raw)
	if err != nil {
		return err
	}
	defer file.Close()
	all, err := readEntries(file)
	if err != nil {
		return err
	}
	return writeUserland(all, out)
}

func writeUserland(all map[string]entry, out string) error {
	alternatives(all)
	certificates(all)
	accounts(all)
	target, err := os.Create(out)
	if err != nil {
		return err
	}
	if err := writeEntries(target, all); err != nil {
		target.Close()
		return err
	}
	return target.Close()
}

func readEntries(r io.Reader) (map[string]entry, error) {
	all := map[string]entry{}
	archive := tar.NewReader(r)
	for {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		name := strings.TrimPrefix(path.Clean("/"+h.Name), "/")
		if name == "" || isUnwanted(name) {
			continue
		}
		data, err := io.ReadAll(archive)
		if err != nil {
			return nil, err
		}
		all[name] = entry{header: *h, data: data}
	}
}

// alternatives links each iptables name to the nft variant, which shares its rules
// with the host's own nft tools.
func alternatives(all map[string]entry) {
	if _, ok := all["usr/sbin/xtables-nft-multi"]; !ok {
		return
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			addLink(all, "usr/sbin/"+name+verb, "xtables-nft-multi")
		}
	}
}

func certificates(all map[string]entry) {
	const bundle, dir = "etc/ssl/certs/ca-certificates.crt", "usr/share/ca-certificates/"
	var joined bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if strings.HasPrefix(name, dir) && strings.HasSuffix(name, ".crt") {
			joined.Write(all[name].data)
		}
	}
	if joined.Len() > 0 {
		addFile(all, bundle, joined.Bytes(), 0o644)
	}
}

func accounts(all map[string]entry) {
	for _, name := range []string{"passwd", "group"} {
		master, ok := all["usr/share/base-passwd/"+name+".master"]
		if _, have := all["etc/"+name]; ok && !have {
			addFile(all, "etc/"+name, master.data, 0o644)
		}
	}
}

func addFile(all map[string]entry, name string, data []byte, mode int64) {
	all[name] = entry{header: tar.Header{Typeflag: tar.TypeReg, Mode: mode, Size: int64(len(data))}, data: data}
}

func addLink(all map[string]entry, name, target string) {
	all[name] = entry{header: tar.Header{Typeflag: tar.TypeSymlink, Linkname: target, Mode: 0o777}}
}

// writeEntries writes the members sorted by name, without times and owners'
// names, after the directories that they lie in.
func writeEntries(w io.Writer, all map[string]entry) error {
	for name := range maps.Clone(all) {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			if _, ok := all[dir]; !ok {
				all[dir] = entry{header: tar.Header{Typeflag: tar.TypeDir, Mode: 0o755}}
			}
		}
	}
	archive := tar.NewWriter(w)
	// A hard link must follow the file it names.
	for _, links := range []bool{false, true} {
		for _, name := range slices.Sorted(maps.Keys(all)) {
			if e := all[name]; (e.header.Typeflag == tar.TypeLink) == links {
				if err := writeEntry(archive, name, e); err != nil {
					return err
				}
			}
		}
	}
	return archive.Close()
}

func writeEntry(archive *tar.Writer, name string, e entry) error {
	h := tar.Header{Typeflag: e.header.Typeflag, Name: name, Mode: e.header.Mode & 0o7777, Uid: e.header.Uid, Gid: e.header.Gid,
		Size: int64(len(e.data)), Linkname: e.header.Linkname, ModTime: time.Unix(0, 0), Format: tar.FormatPAX,
		Devmajor: e.header.Devmajor, Devminor: e.header.Devminor}
	if h.Typeflag == tar.TypeDir {
		h.Name += "/"
	}
	if h.Typeflag == tar.TypeLink {
		h.Linkname = strings.TrimPrefix(path.Clean("/"+h.Linkname), "/")
	}
	if err := archive.WriteHeader(&h); err != nil {
		return err
	}
	_, err := archive.Write(e.data)
	return err
}
