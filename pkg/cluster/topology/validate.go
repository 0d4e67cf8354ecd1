package topology

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// DefaultSubnet is the default network of the nodes.
var DefaultSubnet = netip.MustParsePrefix("10.192.0.0/16")

// MaxControlPlanes is the highest number of control planes. With five members, etcd
// tolerates the loss of two. Each further member makes every write slower.
const MaxControlPlanes = 5

var validName = regexp.MustCompile(`^[a-z]([-a-z0-9]{0,38}[a-z0-9])?$`)

// NameRemedy states the rule of ValidName.
const NameRemedy = "use lower-case letters, digits and -, a letter first, at most 40"

// ValidName reports whether name can be part of a host name.
func ValidName(name string) bool { return validName.MatchString(name) }

// BadName returns the problem that name cannot be part of a host name.
func BadName(name string) error {
	if ValidName(name) {
		return nil
	}
	return problem("cluster-name", NameRemedy, "name %q cannot be the name of a host", name)
}

// Validate returns all problems of a request.
func (r Request) Validate(cluster string) []error {
	return slices.Concat(r.badNames(), r.badSizes(), r.duplicates(cluster), r.badSubnet(cluster))
}

func (r Request) badNames() (errs []error) {
	for _, s := range r.Specs() {
		if err := BadName(s.Name); err != nil {
			errs = append(errs, err)
		}
	}
	return errs
}

func (r Request) badSizes() (errs []error) {
	masters := 0
	for _, s := range r.Specs() {
		if s.Role == ControlPlane {
			masters++
		}
	}
	if len(r.Hosts) == 0 && (masters < 1 || masters > MaxControlPlanes) {
		errs = append(errs, problem("cluster-size", fmt.Sprintf("use 1 to %d", MaxControlPlanes),
			"--masters %d", masters))
	}
	if r.Workers < 0 {
		errs = append(errs, problem("cluster-size", "use 0 or more", "--workers %d", r.Workers))
	}
	return errs
}

// duplicates returns a problem for each pair of nodes with the same host name.
func (r Request) duplicates(cluster string) (errs []error) {
	seen := map[string]bool{}
	for _, s := range r.Specs() {
		name := s.HostName(cluster)
		if seen[name] {
			errs = append(errs,
				problem("cluster-nodes", "give one of them another name", "two nodes would be called %s", name))
		}
		seen[name] = true
	}
	return errs
}

func (r Request) badSubnet(cluster string) []error {
	if !r.Subnet.Addr().Is4() || r.Subnet != r.Subnet.Masked() {
		return []error{problem("cluster-subnet", "use one like "+DefaultSubnet.String(),
			"--dind-subnet %s is not an IPv4 network", r.Subnet)}
	}
	t := r.Topology(cluster, State{})
	var last netip.Addr // the highest address that is necessary
	if t.ControlPlanes() > 0 {
		last = LoadBalancerAddr(r.Subnet)
	}
	for _, n := range t.nodes {
		if last.Less(n.Addr) {
			last = n.Addr
		}
	}
	if last.IsValid() && !HasRoom(r.Subnet, last) {
		return []error{problem("cluster-subnet", "use a larger one", "--dind-subnet %s has no room for %d hosts",
			r.Subnet, len(t.nodes))}
	}
	return nil
}

func problem(name, remedy, text string, args ...any) error {
	return &step.Problem{Name: name, Text: fmt.Sprintf(text, args...), Remedy: remedy}
}
