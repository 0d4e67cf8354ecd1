// Package cluster makes fleets of hosts and, with the kube-bootstrap that runs
// on each of them, clusters out of them.
package cluster

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Manifest is a file of this machine that a host is to find.
type Manifest struct {
	Path string // here
	On   string // the path on the host
}

// Options say what fleet there shall be. The zero value of a field is its
// default.
type Options struct {
	Name       string       // "kube"; part of every name that the engine sees
	Masters    int          // 1
	Workers    int          // as given; a single host is a cluster too
	Nodes      []Spec       // instead of Masters and Workers, when they are not all alike
	Hosts      []string     // names of bare hosts, instead of masters and workers
	Subnet     netip.Prefix // 10.192.0.0/16: the network of the hosts
	HostImage  string       // a variant: "docker-28.5"
	Retain     bool         // leave what was made when something fails
	KeepImages bool         // Clean leaves the images of hosts, for the next fleet
	APIPort    int          // 6443: of the API server, on its nodes
	Publish    bool         // APIPort also leads there on the engine's machine; else a port that is free does

	Kubernetes    string // version that the hosts get, "" for a fleet of bare ones
	FirstSnapshot bool   // take one when the cluster is up for the first time
	Recreate      bool   // remove the cluster first, but not its snapshots

	Made config.Made // the settings, to be recorded with the cluster

	Engine   docker.Choice // that runs the hosts; the one the docker command uses
	CacheDir string        // host images and what the hosts share
	Binary   string        // the kube-bootstrap to put on the hosts: this program
	Bundle   string        // the bundle that the hosts load; "": they pull
	Programs Programs      // of Kubernetes, instead of those in Bundle; none: those that the cluster has

	Manifests []Manifest // of ours, that the first control plane applies

	MasterArgs []string // further arguments of kube-bootstrap master
	WorkerArgs []string // and of kube-bootstrap worker
}

// Defaults of Options.
const (
	DefaultName      = "kube"
	DefaultHostImage = "docker-28.5"
	DefaultAPIPort   = 6443
)

// DefaultSubnet is the network of the hosts.
var DefaultSubnet = netip.MustParsePrefix("10.192.0.0/16")

const (
	// masterAddrs is how many addresses stand before the first worker's, so
	// that a worker keeps its own when a master joins.
	masterAddrs = 8
	// maxMasters is how many etcd goes well with: two of five may die, and each
	// further one makes every write slower.
	maxMasters = 5
)

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		o.Name = DefaultName
	}
	if o.Masters == 0 {
		o.Masters = 1
	}
	if o.APIPort == 0 {
		o.APIPort = DefaultAPIPort
	}
	if !o.Subnet.IsValid() {
		o.Subnet = DefaultSubnet
	}
	if o.HostImage == "" {
		o.HostImage = DefaultHostImage
	}
	var err error
	if o.CacheDir == "" {
		o.CacheDir, err = defaultCacheDir()
	}
	if o.Binary == "" && err == nil {
		o.Binary, err = os.Executable()
	}
	return o, errors.Join(err, o.validate())
}

// defaultCacheDir is outside of any checkout, so that a clean clone finds what
// was built before.
func defaultCacheDir() (string, error) {
	if dir := os.Getenv("KUBE_BOOTSTRAP_CACHE"); dir != "" {
		return dir, nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("cache directory: %w; set KUBE_BOOTSTRAP_CACHE", err)
	}
	return filepath.Join(dir, "kube-bootstrap"), nil
}

var validName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

func (o Options) validate() error {
	errs := slices.Concat(o.badNames(), o.badSizes(), o.twice(), o.badSubnet())
	if _, err := os.Stat(o.Bundle); o.Bundle != "" && err != nil {
		errs = append(errs, problem("bundle", "make it with `kube-bootstrap offline build` or `offline pull`", "--bundle: %v", err))
	}
	return errors.Join(errs...)
}

func problem(name, remedy, text string, args ...any) error {
	return &step.Problem{Name: name, Text: fmt.Sprintf(text, args...), Remedy: remedy}
}

func (o Options) badNames() (errs []error) {
	for _, name := range o.names() {
		if !validName.MatchString(name) {
			errs = append(errs, problem("cluster-name", "use lower-case letters, digits and -, a letter first, at most 40", "name %q can not be the name of a host", name))
		}
	}
	for _, image := range o.images() {
		if _, ok := variants[image]; !ok {
			errs = append(errs, problem("host-image", "use one of "+variantNames(), "--host-image %q is not known", image))
		}
	}
	return errs
}

func (o Options) badSizes() (errs []error) {
	if masters := o.count(Master); len(o.Hosts) == 0 && (masters < 1 || masters > maxMasters) {
		errs = append(errs, problem("cluster-size", fmt.Sprintf("use 1 to %d", maxMasters), "--masters %d", masters))
	}
	if o.Workers < 0 {
		errs = append(errs, problem("cluster-size", "use 0 or more", "--workers %d", o.Workers))
	}
	return errs
}

func (o Options) badSubnet() []error {
	if !o.Subnet.Addr().Is4() || o.Subnet != o.Subnet.Masked() {
		return []error{problem("cluster-subnet", "use one like "+DefaultSubnet.String(), "--dind-subnet %s is not an IPv4 network", o.Subnet)}
	}
	all := o.members()
	if controlPlanes(all) > 0 {
		all = append(all, member{addr: addrAt(o.Subnet, frontAddr)})
	}
	if last := lastAddr(all); last.IsValid() && !roomFor(o.Subnet, last) {
		return []error{problem("cluster-subnet", "use a larger one", "--dind-subnet %s has no room for %d hosts", o.Subnet, len(o.members()))}
	}
	return nil
}

// roomFor reports whether addr is in the subnet and not its broadcast address.
func roomFor(subnet netip.Prefix, addr netip.Addr) bool {
	return subnet.Contains(addr) && subnet.Contains(addr.Next())
}

func addrAt(subnet netip.Prefix, n int) netip.Addr {
	b := subnet.Masked().Addr().As4()
	v := uint32(b[0])<<24 | uint32(b[1])<<16 | uint32(b[2])<<8 | uint32(b[3])
	v += uint32(n)
	return netip.AddrFrom4([4]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
}

func (o Options) engine() (*docker.Engine, error) {
	engine, err := o.Engine.Open()
	if err != nil {
		return nil, &step.Problem{Name: "engine", Text: err.Error(), Remedy: "put --docker-host, --docker-context or DOCKER_HOST right"}
	}
	return engine, nil
}
