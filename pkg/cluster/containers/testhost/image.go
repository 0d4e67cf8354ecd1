// Package testhost creates, starts, stops and removes containers that behave as
// hosts: their images, their network, the files that they share, and the load balancer
// that leads to their API servers. Access to a host is an access.Node.
package testhost

import (
	"archive/tar"
	"crypto/sha256"
	_ "embed" // the files of a test host
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// variant is a kind of host: a root file system of Debian packages.
type variant struct {
	Packages   string
	Newer      string // packages that come from the suite after
	Without    string // init scripts to remove
	Compiled   string `json:",omitempty"` // script that compiles programs into the root file system $1
	Files      []file
	StopSignal string
}

// file is a file of this package in the root file system.
type file struct {
	Path, Content, Link string
	Mode                int64
}

// Images is the name of all host images. The tag contains the variant.
const Images = "kube-bootstrap/host"

const (
	suite      = "trixie"
	newerSuite = "forky"
)

// common are the packages of nearly every host: Docker, and tools for troubleshooting.
const common = "docker.io," + tools

const tools = "docker-cli,iptables,nftables,iproute2,conntrack,ethtool,iputils-ping,curl,ca-certificates," +
	"kmod,procps,tcpdump,socat"

const systemdInit = "systemd,systemd-sysv,dbus"

// libraries29 are the libraries of Docker 29.
const libraries29 = "libseccomp2,libsystemd0,libnftables1"

// devices are init scripts that would set the clock and scan the devices of the machine.
const devices = "udev hwclock.sh brightness checkroot.sh checkfs.sh umountroot"

var variants = map[string]variant{
	"docker-28.5": {
		Packages: common + "," + systemdInit, Newer: "docker.io docker-cli containerd runc",
		Files: systemdFiles, StopSignal: "SIGRTMIN+3",
	},
	"docker-ce": {
		Packages: common + "," + systemdInit, Newer: "docker.io docker-cli containerd runc",
		Files: dockerCEFiles, StopSignal: "SIGRTMIN+3",
	},
	"firewalls": {
		Packages: common + "," + systemdInit + ",firewalld,ufw", Newer: "docker.io docker-cli containerd runc",
		Files: firewallsFiles, StopSignal: "SIGRTMIN+3",
	},
	"docker-29": {
		Packages: tools + "," + systemdInit + ",tini," + libraries29, Newer: "docker-cli", Compiled: docker29Script,
		Files: docker29Files, StopSignal: "SIGRTMIN+3",
	},
	"ssh": {
		Packages: common + "," + systemdInit + ",openssh-server,sudo", Newer: "docker.io docker-cli containerd runc",
		Files: systemdFiles, StopSignal: "SIGRTMIN+3",
	},
	"docker-26.1": {Packages: common + "," + systemdInit, Files: systemdFiles, StopSignal: "SIGRTMIN+3"},
	"sysv": {
		Packages: common + ",sysvinit-core,initscripts,sysv-rc", Files: sysvFiles, StopSignal: "SIGINT",
		Without: devices,
	},
	"openrc": {
		Packages: common + ",sysvinit-core,initscripts,openrc", Files: sysvFiles, StopSignal: "SIGINT",
		Without: devices,
	},
}

// BadVariant returns the problem that there is no such variant.
func BadVariant(name string) error {
	if _, ok := variants[name]; ok {
		return nil
	}
	return &step.Problem{Name: "host-image", Text: fmt.Sprintf("--host-image %q is not known", name),
		Remedy: "use one of " + strings.Join(slices.Sorted(maps.Keys(variants)), ", ")}
}

// VariantOf returns the variant of a host image; "" if its name does not contain
// it, as after a restore.
func VariantOf(image string) string {
	tag, ours := strings.CutPrefix(image, Images+":")
	if at := strings.LastIndex(tag, "-"); ours && at > 0 {
		return tag[:at]
	}
	return ""
}

// Image returns an image that the engine has once the hosts exist.
func Image(t topology.Topology) string {
	name := t.Variant(t.Nodes()[0])
	return variants[name].reference(name)
}

// reference returns the name of the image, with a hash of everything that goes into it.
func (v variant) reference(name string) string {
	data, err := json.Marshal([]any{v, suite, newerSuite, hooks})
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(data)
	return Images + ":" + name + "-" + hex.EncodeToString(sum[:6])
}

// Contents of files of the test hosts.
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
	//go:embed rootfs/docker-ce.service
	dockerCEUnit string
	//go:embed rootfs/docker-ce-containerd.service
	dockerCEContainerdUnit string
	//go:embed rootfs/docker-ce-containerd.toml
	dockerCEContainerdConfig string
	//go:embed rootfs/docker-29.sh
	docker29Script string
	//go:embed rootfs/docker-29.socket
	docker29Socket string
)

const (
	entryPath      = "/usr/local/sbin/host-entry"
	containerdPath = "/etc/containerd/config.toml"
	dockerDefaults = "/etc/default/docker"
)

var systemdFiles = append([]file{
	{Path: entryPath, Content: entryScript, Mode: 0o755},
	{Path: "/usr/local/sbin/host-cgroups", Content: cgroupsScript, Mode: 0o755},
	{Path: "/etc/systemd/system/host-cgroups.service", Content: cgroupsUnit, Mode: 0o644},
	{Path: "/etc/systemd/system/multi-user.target.wants/host-cgroups.service", Link: "../host-cgroups.service"},
	{Path: containerdPath, Content: containerdConfig, Mode: 0o644},
	{Path: "/usr/local/bin/kube-bootstrap", Link: containers.ProgramPath},
	{Path: "/etc/systemd/journald.conf.d/small.conf", Content: journaldConf, Mode: 0o644},
	// The network of the hosts is IPv4, and Docker takes as long over the rules
	// for IPv6 as for all else that it does at its start.
	{Path: dockerDefaults, Content: "DOCKER_OPTS=--ip6tables=false\n", Mode: 0o644},
}, masked()...)

const unitsPath = "/usr/lib/systemd/system/"

// dockerCEFiles are the files of a host with the packages of Docker's own repository: docker-ce
// and containerd.io have other units and another config than the packages of Debian.
var dockerCEFiles = append(slices.Clone(unitsOfDocker), file{Path: "/usr/bin/dockerd", Link: "/usr/sbin/dockerd"},
	configOfContainerd)

var configOfContainerd = file{Path: containerdPath, Content: dockerCEContainerdConfig, Mode: 0o644}

var unitsOfDocker = append(slices.DeleteFunc(slices.Clone(systemdFiles), func(f file) bool {
	return f.Path == containerdPath || f.Path == dockerDefaults
}),
	file{Path: unitsPath + "docker.service", Content: dockerCEUnit, Mode: 0o644},
	file{Path: unitsPath + "containerd.service", Content: dockerCEContainerdUnit, Mode: 0o644},
)

// docker29Files are the units and the configuration of docker-ce, and files that Debian's packages
// install on the other hosts.
var docker29Files = append(slices.Clone(unitsOfDocker), configOfContainerd,
	file{Path: unitsPath + "docker.socket", Content: docker29Socket, Mode: 0o644},
	file{Path: "/etc/systemd/system/sockets.target.wants/docker.socket", Link: unitsPath + "docker.socket"},
	file{Path: "/etc/systemd/system/multi-user.target.wants/docker.service", Link: unitsPath + "docker.service"},
	file{
		Path: "/etc/systemd/system/multi-user.target.wants/containerd.service", Link: unitsPath + "containerd.service",
	},
	file{Path: "/usr/libexec/docker/docker-init", Link: "/usr/bin/tini-static"},
)

// firewallsFiles are the files of a host that has firewalld and ufw. None of them runs before it is
// turned on; ufw is off by default.
var firewallsFiles = append(slices.Clone(systemdFiles), file{
	Path: "/etc/systemd/system/firewalld.service", Link: "/dev/null",
})

// idle units have nothing to do in a container and delay Docker, or would fetch packages.
var idle = []string{
	"dev-hugepages.mount", "dev-mqueue.mount", "run-lock.mount", "sys-kernel-config.mount",
	"sys-fs-fuse-connections.mount",
	"modprobe@.service", "systemd-remount-fs.service", "systemd-tmpfiles-setup-dev-early.service",
	"systemd-tmpfiles-setup-dev.service",
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
	{Path: "/usr/local/bin/kube-bootstrap", Link: containers.ProgramPath},
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
