package cluster

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
)

const entryPath = "/usr/local/sbin/host-entry"

var systemdFiles = []file{
	{Path: entryPath, Content: entryScript, Mode: 0o755},
	{Path: "/usr/local/sbin/host-cgroups", Content: cgroupsScript, Mode: 0o755},
	{Path: "/etc/systemd/system/host-cgroups.service", Content: cgroupsUnit, Mode: 0o644},
	{Path: "/etc/systemd/system/multi-user.target.wants/host-cgroups.service", Link: "../host-cgroups.service"},
	{Path: "/etc/systemd/journald.conf.d/small.conf", Content: journaldConf, Mode: 0o644},
}

var sysvFiles = []file{
	{Path: entryPath, Content: entryScript, Mode: 0o755},
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
