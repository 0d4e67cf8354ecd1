package testhost

import (
	"archive/tar"
	_ "embed" // the files of a test host
	"errors"
	"os"
)

// Files of the test hosts, as they stand there.
var (
	//go:embed rootfs/entry.sh
	entryScript string
	//go:embed rootfs/host-cgroups.sh
	cgroupsScript string
	//go:embed rootfs/host-cgroups.service
	cgroupsUnit string
	//go:embed rootfs/journald.conf
	journaldConf string
	//go:embed rootfs/inittab
	inittab string
	//go:embed rootfs/fstab
	fstab string
	//go:embed rootfs/containerd.toml
	containerdConfig string
)

const (
	entryPath      = "/usr/local/sbin/host-entry"
	containerdPath = "/etc/containerd/config.toml"
)

var systemdFiles = append([]file{
	{Path: entryPath, Content: entryScript, Mode: 0o755},
	{Path: "/usr/local/sbin/host-cgroups", Content: cgroupsScript, Mode: 0o755},
	{Path: "/etc/systemd/system/host-cgroups.service", Content: cgroupsUnit, Mode: 0o644},
	{Path: "/etc/systemd/system/multi-user.target.wants/host-cgroups.service", Link: "../host-cgroups.service"},
	{Path: containerdPath, Content: containerdConfig, Mode: 0o644},
	{Path: "/etc/systemd/journald.conf.d/small.conf", Content: journaldConf, Mode: 0o644},
	// The network of the hosts is IPv4, and Docker takes as long over the rules
	// for IPv6 as for all else that it does at its start.
	{Path: "/etc/default/docker", Content: "DOCKER_OPTS=--ip6tables=false\n", Mode: 0o644},
}, masked()...)

// idle units have nothing to do in a container and come before Docker, or
// would fetch packages by themselves.
var idle = []string{
	"dev-hugepages.mount", "dev-mqueue.mount", "run-lock.mount", "sys-kernel-config.mount", "sys-fs-fuse-connections.mount",
	"modprobe@.service", "systemd-remount-fs.service", "systemd-tmpfiles-setup-dev-early.service", "systemd-tmpfiles-setup-dev.service",
	"systemd-logind.service", "systemd-ask-password-console.path", "systemd-ask-password-wall.path",
	"apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer",
}

func masked() []file {
	var links []file
	for _, unit := range idle {
		links = append(links, file{Path: "/etc/systemd/system/" + unit, Link: "/dev/null"})
	}
	return links
}

var sysvFiles = []file{
	{Path: entryPath, Content: entryScript, Mode: 0o755},
	{Path: containerdPath, Content: containerdConfig, Mode: 0o644},
	{Path: "/etc/inittab", Content: inittab, Mode: 0o644},
	{Path: "/etc/fstab", Content: fstab, Mode: 0o644},
}

// overlay packs the variant's files into a tar archive and returns its path.
func (v variant) overlay() (string, error) {
	out, err := os.CreateTemp("", "host-overlay-*.tar")
	if err != nil {
		return "", err
	}
	archive := tar.NewWriter(out)
	for _, f := range v.Files {
		err = errors.Join(err, f.writeTo(archive))
	}
	return out.Name(), errors.Join(err, archive.Close(), out.Close())
}

func (f file) writeTo(archive *tar.Writer) error {
	header := &tar.Header{Typeflag: tar.TypeReg, Name: "." + f.Path, Mode: f.Mode, Size: int64(len(f.Content))}
	if f.Link != "" {
		header = &tar.Header{Typeflag: tar.TypeSymlink, Name: "." + f.Path, Linkname: f.Link, Mode: 0o777}
	}
	if err := archive.WriteHeader(header); err != nil {
		return err
	}
	_, err := archive.Write([]byte(f.Content))
	return err
}
