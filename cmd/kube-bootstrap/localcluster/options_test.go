package localcluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestBalancedAddresses(t *testing.T) {
	for _, c := range []struct{ addons, given, subnet, want string }{
		{"metallb", "", "10.192.0.0/16", "10.192.255.0-10.192.255.254"},
		{"metallb", "", "10.192.7.0/24", "10.192.7.192-10.192.7.254"},
		{"metallb", "", "10.192.7.0/28", "10.192.7.12-10.192.7.14"},
		{"metallb", "", "10.192.7.0/31", ""},
		{"metallb", "10.192.3.0/24", "10.192.0.0/16", "10.192.3.0/24"},
		{"local-path", "", "10.192.0.0/16", ""},
	} {
		env := map[string]string{
			"KUBE_BOOTSTRAP_ADDONS": c.addons, "KUBE_BOOTSTRAP_LOAD_BALANCER_ADDRESSES": c.given,
			"K8S_DIND_DIND_SUBNET": c.subnet,
		}
		cfg, origins, err := source.Load("", source.ClusterEnv(func(name string) string { return env[name] }), nil)
		must.NoError(t, err)
		cfg = withBalancedAddresses(cfg, origins)
		setting, _ := config.Find("loadBalancerAddresses")
		if got := setting.Get(cfg); got != c.want {
			t.Errorf("%+v: %q", c, got)
		}
		if args := strings.Join(cfg.Args(config.Master, origins), " "); strings.Contains(args,
			"--load-balancer-addresses="+c.want) != (c.want != "") {
			t.Errorf("%+v: the nodes get %s", c, args)
		}
	}
}

func TestNoNodeHasABalancedAddress(t *testing.T) {
	for workers, want := range map[int]string{
		2: "", 3: "10.192.7.12-10.192.7.14 has the address of node kube-worker-3, 10.192.7.12",
	} {
		cfg := config.Default()
		cfg.DindSubnet, cfg.Workers, cfg.Addons = config.Networks{netip.MustParsePrefix("10.192.7.0/28")}, workers,
			[]string{extension.AddonMetalLB}
		cfg = withBalancedAddresses(cfg, config.Origins{})
		o, err := toClusterOptions(cfg, config.Origins{})
		must.NoError(t, err)
		text := ""
		if err := requirements.Balanced(o.Topology(o.Name, topology.State{}), cfg.LoadBalancerAddresses); err != nil {
			text = err.Error()
		}
		if !strings.Contains(text, want) || want == "" && text != "" {
			t.Errorf("%d workers: %q, want %q", workers, text, want)
		}
	}
}

// A later up gives the nodes the addresses with the addon, and neither of them if
// the nodes have both already.
func TestBalancedAddressesOfAnExistingCluster(t *testing.T) {
	const addresses = "--load-balancer-addresses=10.192.255.0-10.192.255.254"
	for _, c := range []struct {
		was, given string
		want       bool
	}{
		{"local-path", "local-path,metallb", true},
		{"local-path", "", false},
		{"metallb", "", false},
		{"metallb", "metallb", true},
	} {
		env := map[string]string{"KUBE_BOOTSTRAP_ADDONS": c.given}
		cfg, origins, err := source.Load("", source.ClusterEnv(func(name string) string { return env[name] }), nil)
		must.NoError(t, err)
		cfg, _, err = cfg.WithRecord(config.ClusterRecord{Given: map[string]string{"addons": c.was},
			Defaults: map[string]string{"loadBalancerAddresses": ""}}, origins)
		must.NoError(t, err)
		cfg = withBalancedAddresses(cfg, origins).WithoutRecordedFiles(origins)
		args := strings.Join(cfg.Args(config.Master, origins), " ")
		if strings.Contains(args, addresses) != c.want || strings.Contains(args, "--addons") != (c.given != "") {
			t.Errorf("%+v: the nodes get %s", c, args)
		}
	}
}
