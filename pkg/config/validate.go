package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
)

// Validate returns an error for every invalid value, each with a remedy. role is the future role of the host;
// if it is empty, checks for a single role are skipped. Validate checks only the settings, never the host.
func (c Config) Validate(role string) field.ErrorList {
	errs := c.each()
	if len(errs) == 0 {
		errs = c.together()
	}
	return append(errs, c.validateControlPlane(role)...)
}

// ValidateRead is Validate for settings of which some could not be read: those have their defaults, which other
// settings must not be compared with.
func (c Config) ValidateRead(role string, given Origins) field.ErrorList {
	errs := c.each()
	if given["masterIP"].Source == FromDefault { // a given text may be unreadable
		errs = append(errs, c.validateControlPlane(role)...)
	}
	return errs
}

func (c Config) validateControlPlane(role string) field.ErrorList {
	switch {
	case c.MasterIP.IsValid():
	case role == RoleWorker:
		return field.ErrorList{required("masterIP",
			"a worker must know the control-plane host it joins; set MASTER_IP, --master-ip or masterIP in the file")}
	case role == RoleControlPlane && c.Join:
		return field.ErrorList{required("masterIP",
			"with --join, a control plane must know another one; set MASTER_IP, --master-ip or masterIP in the file")}
	}
	return nil
}

func required(name, because string) *field.Error { return field.Required(field.NewPath(name), because) }

// ValidateJoin asks for what a host needs once, when it joins in a role. A host that has joined already has
// credentials of its own.
func (c Config) ValidateJoin(role string) field.ErrorList {
	errs := c.validateControlPlane(role)
	if role == RoleControlPlane && c.CertificateKey == "" {
		errs = append(errs, required("certificateKey",
			"`kube-bootstrap token create --control-plane` on a control-plane host prints one; "+
				"pass it with KUBE_BOOTSTRAP_CERTIFICATE_KEY or --certificate-key"))
	}
	if c.Token == "" {
		errs = append(errs, required("token",
			"`kube-bootstrap token create` on the control-plane host prints one; pass it with --token-file, TOKEN or "+
				"--token"))
	}
	if c.CACertHash == "" {
		errs = append(errs, required("caCertHash",
			"`kube-bootstrap token create` on the control-plane host prints it; pass it with --ca-cert-hash"))
	}
	return errs
}

// each checks the settings one by one.
func (c Config) each() field.ErrorList {
	var errs field.ErrorList
	for _, s := range settings {
		raw := s.at(&c).get()
		path := field.NewPath(s.Field)
		switch {
		case raw == "" && s.Default != "":
			errs = append(errs, required(s.Field, "the default is "+s.Default))
		case raw == "":
		case len(s.Values) > 0 && !slices.Contains(s.Values, raw):
			errs = append(errs, field.NotSupported(path, raw, s.Values))
		default:
			if must := s.Must(c); must != "" {
				errs = append(errs, field.Invalid(path, s.Excerpt(raw), must))
			}
		}
	}
	return errs
}

// Excerpt returns what an error contains of a value.
func (s Setting) Excerpt(raw string) string {
	const most = 200 // bytes
	shown := s.Masked(raw)
	if len(shown) > most {
		shown = shown[:most] + "..."
	}
	return shown
}

// together compares settings with one another. Each is good by itself here.
func (c Config) together() field.ErrorList {
	var errs field.ErrorList
	wrong := func(name, value, format string, args ...any) {
		errs = append(errs, field.Invalid(field.NewPath(name), value, fmt.Sprintf(format, args...)))
	}
	c.apart(wrong)
	if c.BalancerPort == c.APIServerPort || c.BalancerPort+1 == c.APIServerPort {
		wrong("balancerPort", strconv.Itoa(c.BalancerPort),
			"it and the next one must not be the apiServerPort %d; choose another", c.APIServerPort)
	}
	if c.APIServerPort == 65535 {
		wrong("apiServerPort", "65535",
			"must be lower, because the agents of control planes use the next port; choose another")
	}
	if c.FlannelBackend == "udp" && c.Arch != "amd64" {
		wrong("flannelBackend", c.FlannelBackend, "exists on amd64 only, not on %s; use vxlan", c.Arch)
	}
	c.overlapping(wrong)
	c.newerFields(wrong)
	c.unknownNames(wrong)
	c.mirrors(wrong)
	missing := func(name, because string) { errs = append(errs, required(name, because)) }
	c.Registry.pairs(missing)
	c.OIDC.pairs(missing)
	slices.SortFunc(errs, func(a, b *field.Error) int { return strings.Compare(a.Field, b.Field) })
	return errs
}

// apart reports addresses and networks that overlap, and a DNS address that no Service can have.
func (c Config) apart(wrong func(name, value, format string, args ...any)) {
	pods, services := c.FlannelNetwork.IPv4(), c.ServiceNetwork.IPv4()
	if pods.Overlaps(services) {
		wrong("serviceNetwork", services.String(), "overlaps flannelNetwork %s; choose another network for one of them",
			pods)
	}
	dns, usual := c.DNSServerIP, addresses.Text(c.ServiceNetwork.dns())
	if !services.Contains(dns) {
		wrong("dnsServerIP", addresses.Text(dns), "must be an address of serviceNetwork %s, such as %s",
			services, usual)
	} else if dns == services.Addr() || dns == services.Addr().Next() {
		wrong("dnsServerIP", dns.String(), "is taken: the first address of serviceNetwork is the API server's; use %s",
			usual)
	}
	for name, ip := range map[string]netip.Addr{"ipAddress": c.IPAddress, "masterIP": c.MasterIP} {
		if pods.Contains(ip) {
			wrong(name, ip.String(), "lies inside flannelNetwork %s; choose a flannelNetwork apart from the hosts' own",
				pods)
		}
		if services.Contains(ip) {
			wrong(name, ip.String(), "lies inside serviceNetwork %s; choose a serviceNetwork apart from the hosts' own",
				services)
		}
	}
}
