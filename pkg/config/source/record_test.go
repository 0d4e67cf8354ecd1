package source

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// made returns the record of a cluster with these settings, as it is read back.
func made(t *testing.T, pairs ...string) (m config.ClusterRecord) {
	t.Helper()
	cfg, origins, err := Load("", hostEnv(pairs...), nil)
	must.NoError(t, err)
	data, err := json.Marshal(cfg.Record(origins))
	must.NoError(t, err)
	must.NoError(t, json.Unmarshal(data, &m))
	return m
}

func TestWhatIsNotSaidIsAsTheClusterWasMade(t *testing.T) {
	m := made(t, "KUBE_BOOTSTRAP_DIND_SUBNET", "10.200.0.0/16", "FLANNEL_BACKEND", "host-gw",
		"KUBE_BOOTSTRAP_SERVICE_NETWORK", "10.97.0.0/16")
	m.Defaults["kubernetesVersion"] = "v1.34.4" // default of an older program
	delete(m.Defaults, "balancerPort")          // a setting that it did not have
	m.Given["tomorrow"] = "x"                   // a setting of a newer program
	cfg, origins, err := Load("", noEnv, nil)
	must.NoError(t, err)
	cfg, all, err := cfg.WithRecord(m, origins)
	must.NoError(t, err)
	if len(all) > 0 {
		t.Errorf("differs: %v", all)
	}
	if cfg.DindSubnet.String() != "10.200.0.0/16" || cfg.FlannelBackend != "host-gw" ||
		cfg.KubernetesVersion != "v1.34.4" || cfg.BalancerPort != 6440 {
		t.Errorf("%+v", cfg)
	}
	if errs := cfg.Validate(""); len(errs) > 0 {
		t.Error(errs.ToAggregate())
	}
	args := strings.Join(cfg.Args(config.Master, origins), " ")
	for _, want := range []string{"--flannel-backend=host-gw", "--kubernetes-version=v1.34.4"} {
		if !strings.Contains(args, want) {
			t.Errorf("%s is not handed on: %s", want, args)
		}
	}
	if strings.Contains(args, "--balancer-port") {
		t.Errorf("a default is handed on: %s", args)
	}
	if again := cfg.Record(origins); again.Given["flannelBackend"] != "host-gw" ||
		again.Defaults["kubernetesVersion"] != "v1.34.4" {
		t.Errorf("the next record: %+v", again)
	}
}

func TestWhatIsSaidOtherwiseDiffers(t *testing.T) {
	m := made(t, "FLANNEL_BACKEND", "host-gw", "RESTART_POLICY", "always")
	file := write(t, "apiVersion: "+config.APIVersion+
		"\nkind: Cluster\nflannelBackend: vxlan\ndindSubnet: 10.192.0.0/16\n")
	cfg, origins, err := Load(file,
		ClusterEnv(env("K8S_DIND_ETCD_VERSION", "3.6.1", "RESTART_POLICY", "no", "K8S_VERSION",
			m.Defaults["kubernetesVersion"])), nil)
	must.NoError(t, err)
	_, all, err := cfg.WithRecord(m, origins)
	must.NoError(t, err)
	want := "K8S_DIND_ETCD_VERSION: \"\", v3.6.1; flannelBackend (" + file + ":3): \"host-gw\", vxlan; "
	var got string
	for _, d := range all {
		got += fmt.Sprintf("%s: %q, %s; ", d.Name(), d.InForce, d.Given)
	}
	if got != want {
		t.Errorf("differs by\n%s, want\n%s", got, want)
	}
}

func TestANewClusterHasTheContainedAddons(t *testing.T) {
	for _, c := range []struct {
		name, given string
		m           config.ClusterRecord
		want        string
	}{
		{"new", "", config.ClusterRecord{}, "metrics-server,local-path"},
		{"new, without addons", extension.NoAddons, config.ClusterRecord{}, ""},
		{"new, with one", extension.AddonLocalPath, config.ClusterRecord{}, extension.AddonLocalPath},
		{"created without addons", "", made(t, "KUBE_BOOTSTRAP_ADDONS", extension.NoAddons), ""},
		{"created by an older program", "", made(t), ""},
		{"created with one", "", made(t, "KUBE_BOOTSTRAP_ADDONS", extension.AddonLocalPath), extension.AddonLocalPath},
	} {
		var pairs []string
		if c.given != "" {
			pairs = []string{"KUBE_BOOTSTRAP_ADDONS", c.given}
		}
		cfg, origins, err := Load("", hostEnv(pairs...), nil)
		must.NoError(t, err)
		cfg, _, err = cfg.WithRecord(c.m, origins)
		must.NoError(t, err)
		if got := strings.Join(cfg.Addons, ","); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		args := strings.Join(cfg.Args(config.Master, origins), " ")
		if c.want != "" && !strings.Contains(args, "--addons="+c.want) {
			t.Errorf("%s: the nodes get %s", c.name, args)
		}
	}
}
