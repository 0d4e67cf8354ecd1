package userland

import (
	"bytes"
	"maps"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
)

// unwanted is what no program at run time reads.
var unwanted = []string{"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/",
	"usr/share/lintian/",
	"usr/share/perl5/", "usr/share/bash-completion/", "usr/share/zsh/", "usr/share/fish/", "usr/share/common-licenses/",
	"usr/share/doc-base/", "usr/share/pixmaps/", "usr/share/menu/", "usr/share/initramfs-tools/", "usr/share/debconf/",
	"usr/lib/systemd/", "usr/lib/udev/", "usr/include/", "usr/lib/mime/", "var/lib/apt/", "var/cache/", "var/lib/dpkg/",
	"dev/", "proc/", "sys/", "run/"}

// unwantedParts match files of needed packages that no component uses: character sets, a
// database for arpd and one for lastlog2, debuggers.
var unwantedParts = []string{"/gconv/", "/libdb-5.3.so", "/libsqlite3.so", "usr/sbin/arpd", "usr/bin/lastlog2",
	"usr/bin/openssl",
	"usr/sbin/debugfs", "usr/sbin/rdma", "usr/sbin/devlink", "/libmvec.so"}

func isUnwanted(name string) bool {
	within := func(dir string) bool { return strings.HasPrefix(name+"/", dir) && name+"/" != dir }
	part := func(text string) bool { return strings.Contains(name, text) }
	return slices.ContainsFunc(unwanted, within) || slices.ContainsFunc(unwantedParts, part)
}

// addScripted adds the files that package scripts would have made.
func addScripted(tree rootfs.Tree) {
	alternatives(tree)
	certificates(tree)
	accounts(tree)
}

// alternatives links each iptables name to the nft variant, which shares its rules
// with the host's own nft tools.
func alternatives(tree rootfs.Tree) {
	if _, ok := tree["usr/sbin/xtables-nft-multi"]; !ok {
		return
	}
	for _, name := range []string{"iptables", "ip6tables"} {
		for _, verb := range []string{"", "-save", "-restore"} {
			tree.AddLink("usr/sbin/"+name+verb, "xtables-nft-multi")
		}
	}
}

func certificates(tree rootfs.Tree) {
	const dir = "usr/share/ca-certificates/"
	var joined bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(tree)) {
		if strings.HasPrefix(name, dir) && strings.HasSuffix(name, ".crt") {
			joined.Write(tree[name].Data)
		}
	}
	if joined.Len() > 0 {
		tree.AddFile("etc/ssl/certs/ca-certificates.crt", joined.Bytes(), 0o644)
	}
}

func accounts(tree rootfs.Tree) {
	for _, name := range []string{"passwd", "group"} {
		master, ok := tree["usr/share/base-passwd/"+name+".master"]
		if _, have := tree["etc/"+name]; ok && !have {
			tree.AddFile("etc/"+name, master.Data, 0o644)
		}
	}
}
