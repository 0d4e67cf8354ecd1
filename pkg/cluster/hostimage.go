package cluster

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// variant is a kind of test host: a root file system of Debian packages.
type variant struct {
	Packages   string
	Newer      string // packages that come from the suite after
	Without    string // init scripts to remove
	Files      []file
	StopSignal string
}

// file is one of ours in the root file system.
type file struct {
	Path, Content, Link string
	Mode                int64
}

// hostImages is the name of all images of hosts; the tag says which.
const hostImages = "kube-bootstrap/host"

const (
	suite      = "trixie"
	newerSuite = "forky"
)

// common is what every host has beside its init: Docker, and what an admin
// reaches for when something does not work.
const common = "docker.io,docker-cli,iptables,nftables,iproute2,conntrack,ethtool,iputils-ping,curl,ca-certificates," +
	"kmod,procps,tcpdump,socat"

const systemdInit = "systemd,systemd-sysv,dbus"

// devices are init scripts that would set the clock and walk the devices of the
// machine around.
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

func variantNames() string {
	return strings.Join(slices.Sorted(maps.Keys(variants)), ", ")
}

// reference names the image after everything that goes into it.
func (v variant) reference(name string) string {
	data, err := json.Marshal([]any{v, suite, newerSuite, hooks})
	if err != nil {
		panic(err) // strings and numbers only
	}
	sum := sha256.Sum256(data)
	return hostImages + ":" + name + "-" + hex.EncodeToString(sum[:6])
}

// hostImage is the step that puts the image of a variant into the engine, from
// the cache or from Debian's packages.
func (f *fleet) hostImage(name string) step.Step {
	image := variants[name].reference(name)
	return step.Step{
		Name: "make host image " + name,
		Check: func(ctx context.Context) (step.Diff, error) {
			has, err := f.docker.HasImage(ctx, image)
			if err != nil || has {
				return nil, err
			}
			return step.Diff{"import image " + image}, nil
		},
		Apply: func(ctx context.Context) error { return f.makeImage(ctx, name, image) },
	}
}

func (f *fleet) makeImage(ctx context.Context, name, image string) error {
	release, err := f.lockCache(ctx, "hostimage-"+name)
	if err != nil {
		return err
	}
	defer release()
	path := filepath.Join(f.CacheDir, "hosts", strings.TrimPrefix(image, hostImages+":")+".tar.zst")
	if _, err := os.Stat(path); err != nil {
		if err := variants[name].build(ctx, path); err != nil {
			return err
		}
	}
	return importRootfs(ctx, f.docker, image, path)
}

func importRootfs(ctx context.Context, docker *docker.Engine, ref, path string) error {
	packed, err := os.Open(path)
	if err != nil {
		return err
	}
	defer packed.Close()
	size := int64(0)
	if info, err := packed.Stat(); err == nil {
		size = info.Size()
	}
	counted := &counter{from: packed, report: func(n int64) { step.Report(ctx, "import "+ref, n, size) }}
	plain, err := zstd.NewReader(counted)
	if err != nil {
		return err
	}
	defer plain.Close()
	return docker.ImportImage(ctx, ref, plain)
}

// counter reports how much was read, once a megabyte.
type counter struct {
	from   io.Reader
	done   int64
	report func(int64)
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.from.Read(p)
	before := c.done
	c.done += int64(n)
	if before>>20 != c.done>>20 || err != nil {
		c.report(c.done)
	}
	return n, err
}

// build makes the root file system with mmdebstrap and packs it into path, in
// one move.
func (v variant) build(ctx context.Context, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	out, err := os.CreateTemp(filepath.Dir(path), ".building-*")
	if err != nil {
		return err
	}
	defer os.Remove(out.Name())
	defer out.Close()
	packed, err := zstd.NewWriter(out, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return err
	}
	if err := v.bootstrap(ctx, packed); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	if err := out.Close(); err != nil {
		return err
	}
	return os.Rename(out.Name(), path)
}

// hooks are the options of mmdebstrap that do not depend on the variant.
var hooks = []string{
	"--variant=minbase", "--format=tar",
	`--aptopt=Apt::Install-Recommends "false"`,
	`--aptopt=Acquire::Check-Valid-Until "false"`,
	`--aptopt=APT::Default-Release "` + suite + `"`,
	"--dpkgopt=path-exclude=/usr/share/man/*",
	"--dpkgopt=path-exclude=/usr/share/locale/*",
	"--dpkgopt=path-exclude=/usr/share/doc/*",
}

func (v variant) bootstrap(ctx context.Context, out io.Writer) error {
	overlay, err := v.overlay()
	if err != nil {
		return err
	}
	defer os.Remove(overlay)
	reports, done := reportLines(ctx)
	defer done()
	mirror, err := host.DebianMirror()
	if err != nil {
		return err
	}
	_, err = host.Command{Args: v.args(overlay, mirror), Stdout: out, Stderr: reports}.Run(ctx)
	if err != nil {
		return fmt.Errorf("make a root file system from Debian packages (is mmdebstrap installed?): %w\n%s", err, reports.tail())
	}
	return nil
}

func (v variant) args(overlay, mirror string) []string {
	args := append([]string{"mmdebstrap", "--include=" + v.Packages}, hooks...)
	sources := []string{"deb " + mirror + " " + suite + " main"}
	if v.Newer != "" {
		sources = append(sources, "deb "+mirror+" "+newerSuite+" main")
		args = append(args, `--customize-hook=DEBIAN_FRONTEND=noninteractive chroot "$1" apt-get install -y -q -t `+newerSuite+" "+v.Newer)
	}
	if v.Without != "" {
		args = append(args, `--customize-hook=cd "$1"/etc && for s in `+v.Without+`; do rm -f init.d/$s rc?.d/[SK][0-9][0-9]$s runlevels/*/$s; done`)
	}
	args = append(args, "--customize-hook=tar-in "+overlay+" /", suite, "-")
	return append(args, sources...)
}

// lines hands each line that is written on, and keeps the last ones.
type lines struct {
	*io.PipeWriter
	last []string
	end  chan struct{}
}

const keptLines = 20

func reportLines(ctx context.Context) (*lines, func()) {
	reader, writer := io.Pipe()
	l := &lines{PipeWriter: writer, end: make(chan struct{})}
	go func() {
		defer close(l.end)
		scanner := bufio.NewScanner(reader)
		scanner.Buffer(nil, 1<<20)
		for scanner.Scan() {
			text := strings.TrimSpace(scanner.Text())
			l.last = append(l.last[max(0, len(l.last)-keptLines+1):], text)
			step.Report(ctx, strings.TrimPrefix(text, "I: "), 0, 0)
		}
		_, _ = io.Copy(io.Discard, reader)
	}()
	return l, func() {
		writer.Close()
		<-l.end
	}
}

func (l *lines) tail() string {
	l.Close()
	<-l.end
	return strings.Join(l.last, "\n")
}
