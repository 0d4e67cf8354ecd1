package kubelet

import (
	"net/netip"
	"os"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

const (
	hostEtc      = "/host/etc" // the host's /etc as the kubelet sees it
	hostResolv   = "/etc/resolv.conf"
	systemResolv = "/run/systemd/resolve/resolv.conf"
)

// resolv chooses the resolv.conf of pods. They cannot reach a resolver on a
// loopback address of the host. path is as the kubelet sees it; own is the content
// of a file that kube-bootstrap must write there, nil for a file of the host.
func resolv(files host.Files) (path string, own []byte) {
	data, err := files.Read(hostResolv)
	if err != nil {
		return resolvFile, nil
	}
	kept, dropped := withoutLoopback(string(data))
	switch {
	case dropped && files.Exists(systemResolv):
		return systemResolv, nil // kept up to date by systemd-resolved
	case !dropped && plainFile(files, hostResolv):
		return hostEtc + "/resolv.conf", nil
	}
	return resolvFile, []byte(kept)
}

// HasResolver reports whether pods of this host can resolve the outside world:
// whether any name server is left once those on a loopback address are not
// counted.
func HasResolver(files host.Files) bool {
	path, text := resolv(files)
	if path != resolvFile {
		text, _ = files.Read(strings.TrimPrefix(path, "/host")) // a missing file names no server
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			return true
		}
	}
	return false
}

// plainFile is false for a link, which leads elsewhere inside of a container.
func plainFile(files host.Files, path string) bool {
	info, err := os.Lstat(files.Path(path))
	return err == nil && info.Mode().IsRegular()
}

func withoutLoopback(conf string) (kept string, dropped bool) {
	var b strings.Builder
	for line := range strings.Lines(conf) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "nameserver" {
			if addr, err := netip.ParseAddr(words[1]); err == nil && addr.IsLoopback() {
				dropped = true
				continue
			}
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String(), dropped
}
