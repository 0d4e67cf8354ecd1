// Package testhost creates, starts, stops and removes containers that behave as
// hosts: their images, their network, the files that they share, and the front
// that leads to their API servers. Access to a host is a driver.Node.
package testhost

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// variant is a kind of host: a root file system of Debian packages.
type variant struct {
	Packages   string
	Newer      string // packages that come from the suite after
	Without    string // init scripts to remove
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

// common are the packages of every host besides its init: Docker, and tools for
// troubleshooting.
const common = "docker.io,docker-cli,iptables,nftables,iproute2,conntrack,ethtool,iputils-ping,curl,ca-certificates," +
	"kmod,procps,tcpdump,socat"

const systemdInit = "systemd,systemd-sysv,dbus"

// devices are init scripts that would set the clock and scan the devices of the
// engine's machine.
const devices = "udev hwclock.sh brightness checkroot.sh checkfs.sh umountroot"

var variants = map[string]variant{
	"docker-28.5": {
		Packages: common + "," + systemdInit, Newer: "docker.io docker-cli containerd runc",
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

// VariantOf returns the variant that a host was made of; "" if its image name
// does not contain it, as after a restore.
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

// reference returns the name of the image. It contains a hash of everything that
// goes into the image.
func (v variant) reference(name string) string {
	data, err := json.Marshal([]any{v, suite, newerSuite, hooks})
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(data)
	return Images + ":" + name + "-" + hex.EncodeToString(sum[:6])
}
