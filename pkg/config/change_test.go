package config

import (
	"slices"
	"testing"

	"github.com/spf13/pflag"
)

func TestEverySettingSaysWhetherItMayChange(t *testing.T) {
	for _, s := range settings {
		if s.Change == unstated {
			t.Errorf("%s: the row does not say whether the setting may change", s.Field)
		}
	}
}

func TestWhatCannotChangeStays(t *testing.T) {
	inForce := Default()
	inForce.ServiceNetwork, inForce.DNSServerIP, inForce.IPAddress, inForce.HostName = "10.97.0.0/16", "10.97.0.10", "10.0.0.1", "a"
	for name, c := range map[string]struct {
		role, flag, value string
		refused           string // the refused field; "" if the new value is accepted
	}{
		"the service network":        {RoleMaster, "service-network", "10.98.0.0/16", "serviceNetwork"},
		"the DNS domain":             {RoleWorker, "dns-domain", "k8s.lan", "dnsDomain"},
		"the DNS address":            {RoleMaster, "dns-server-ip", "10.97.0.11", "dnsServerIP"},
		"the host name":              {RoleWorker, "host-name", "b", "hostName"},
		"the flannel network":        {RoleMaster, "flannel-network", "10.9.0.0/16", "flannelNetwork"},
		"the backend":                {RoleMaster, "flannel-backend", "host-gw", "flannelBackend"},
		"the pod plugin":             {RoleMaster, "cni-plugin", "calico", "cniPlugin"},
		"a control plane's address":  {RoleMaster, "ip-address", "10.0.0.2", "ipAddress"},
		"the port of the API server": {RoleMaster, "apiserver-port", "7443", "apiServerPort"},
		"a worker's address":         {RoleWorker, "ip-address", "10.0.0.2", ""},
		"the value in force":         {RoleMaster, "service-network", "10.97.0.0/16", ""},
		"what may change":            {RoleMaster, "node-label", "a=b", ""},
	} {
		flags := pflag.NewFlagSet("master", pflag.ContinueOnError)
		AddFlags(flags, Master|Worker)
		if err := flags.Parse([]string{"--" + c.flag + "=" + c.value}); err != nil {
			t.Fatal(err)
		}
		given, origins, err := Load("", noEnv, flags)
		if err != nil {
			t.Fatal(err)
		}
		kept, refused := given.Keep(FixedFor(c.role), inForce, origins)
		switch {
		case c.refused == "" && len(refused) > 0, c.refused != "" && len(refused) != 1:
			t.Errorf("%s: refused are %+v", name, refused)
		case c.refused != "" && (refused[0].Field != c.refused || refused[0].Given != c.value || refused[0].InForce == c.value):
			t.Errorf("%s: refused is %+v", name, refused[0])
		}
		if kept.ServiceNetwork != "10.97.0.0/16" || kept.HostName != "a" {
			t.Errorf("%s: a default has changed the settings in force: %+v", name, kept)
		}
	}
}

func TestTheSettingsOfAHostAreNobodysWish(t *testing.T) {
	if at := (decoder{path: SavedPath}).origin(word("")); at.Source != FromHost {
		t.Errorf("what a host was set up with is from %s", at)
	}
}

func TestANodeOfTheFileSaysAllThatIsItsOwn(t *testing.T) {
	var n Node
	n.Own.NodeLabels = []string{"disk=ssd"}
	args := n.Args()
	for _, want := range []string{"--node-label=disk=ssd", "--node-taint=", "--kubelet-config="} {
		if !slices.Contains(args, want) {
			t.Errorf("%q lacks %s: an earlier value would stay", args, want)
		}
	}
}
