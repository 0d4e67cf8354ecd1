package source

import (
	"net/netip"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestWhatCannotChangeStays(t *testing.T) {
	inForce := config.Default()
	inForce.ServiceNetwork, inForce.HostName = config.Networks{netip.MustParsePrefix("10.97.0.0/16")}, "a"
	inForce.DNSServerIP, inForce.IPAddress = netip.MustParseAddr("10.97.0.10"), netip.MustParseAddr("10.0.0.1")
	for name, c := range map[string]struct {
		role, flag, value string
		refused           string // the refused field; "" if the new value is accepted
	}{
		"the service network":        {config.RoleControlPlane, "service-network", "10.98.0.0/16", "serviceNetwork"},
		"the DNS domain":             {config.RoleWorker, "dns-domain", "k8s.lan", "dnsDomain"},
		"the DNS address":            {config.RoleControlPlane, "dns-server-ip", "10.97.0.11", "dnsServerIP"},
		"the host name":              {config.RoleWorker, "host-name", "b", "hostName"},
		"the flannel network":        {config.RoleControlPlane, "flannel-network", "10.9.0.0/16", "flannelNetwork"},
		"the backend":                {config.RoleControlPlane, "flannel-backend", "host-gw", "flannelBackend"},
		"the pod plugin":             {config.RoleControlPlane, "cni-plugin", "calico", "cniPlugin"},
		"a control plane's address":  {config.RoleControlPlane, "ip-address", "10.0.0.2", "ipAddress"},
		"the port of the API server": {config.RoleControlPlane, "apiserver-port", "7443", "apiServerPort"},
		"a worker's address":         {config.RoleWorker, "ip-address", "10.0.0.2", ""},
		"the value in force":         {config.RoleControlPlane, "service-network", "10.97.0.0/16", ""},
		"what may change":            {config.RoleControlPlane, "node-label", "a=b", ""},
	} {
		flags := pflag.NewFlagSet("master", pflag.ContinueOnError)
		AddFlags(flags, config.Master|config.Worker)
		must.NoError(t, flags.Parse([]string{"--" + c.flag + "=" + c.value}))
		given, origins, err := Load("", noEnv, flags)
		must.NoError(t, err)
		kept, refused := given.WithInForce(config.FixedFor(c.role), inForce, origins)
		switch {
		case c.refused == "" && len(refused) > 0, c.refused != "" && len(refused) != 1:
			t.Errorf("%s: refused are %+v", name, refused)
		case c.refused != "" &&
			(refused[0].Field != c.refused || refused[0].Given != c.value || refused[0].InForce == c.value):
			t.Errorf("%s: refused is %+v", name, refused[0])
		}
		if kept.ServiceNetwork.String() != "10.97.0.0/16" || kept.HostName != "a" {
			t.Errorf("%s: a default has changed the settings in force: %+v", name, kept)
		}
	}
}
