package source

import (
	"net/netip"
	"reflect"
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestSpellings(t *testing.T) {
	cfg, _, err := Load("", hostEnv("ARCH", "aarch64", "ETCD_VERSION", "3.7.3", "TIMEOUT_FOR_SERVICES", "20",
		"KUBE_BOOTSTRAP_SERVICE_NETWORK", "10.0.0.0/16", "DNS_DOMAIN", "k8s.lan.", "K8S_VERSION", "stable"), nil)
	must.NoError(t, err)
	if cfg.Arch != "arm64" || cfg.EtcdVersion != "v3.7.3" || cfg.TimeoutForServices.Seconds() != 20 ||
		cfg.DNSServerIP.String() != "10.0.0.10" || cfg.DNSDomain != "k8s.lan" ||
		cfg.KubernetesVersion != catalog.Newest().Patch {
		t.Errorf("%+v", cfg)
	}
}

func TestMarshalRoundTripWithoutSecrets(t *testing.T) {
	c := config.Default()
	c.Token, c.MasterIP, c.IgnorePreflight = "abcdef.0123456789abcdef", netip.MustParseAddr("192.168.1.2"),
		[]string{"swap", "clock"}
	c.Addons = []string{"dashboard", "/root/a.yaml", "https://example.com/b.yaml#sha256:0"}
	data, err := file.Marshal(c)
	must.NoError(t, err)
	view, err := file.View(c, nil)
	if err != nil || strings.Contains(string(data)+string(view), "0123456789abcdef") {
		t.Error("the token is in the file")
	}
	back, _, err := Load(write(t, string(data)), noEnv, nil)
	must.NoError(t, err)
	c.Token, c.IgnorePreflight = "", nil
	saved, err := file.ReadSaved(write(t, string(data)+"fieldOfTomorrow: 1\n"))
	if err != nil || !reflect.DeepEqual(saved, c) {
		t.Errorf("ReadSaved: %v\n got %+v\nwant %+v", err, saved, c)
	}
	if !reflect.DeepEqual(back, c) {
		t.Errorf("\n got %+v\nwant %+v", back, c)
	}
}

func TestSharedIsTakenOverAndNothingElse(t *testing.T) {
	controlPlane := config.Default()
	controlPlane.FlannelNetwork, controlPlane.FlannelBackend, controlPlane.FlannelIPMasq, controlPlane.NetInterface = config.Networks{netip.MustParsePrefix("10.9.0.0/16")}, "host-gw", false, "eth9"
	data := append(file.Shared(controlPlane), "aFieldOfTomorrow: 1\nnetInterface: evil0\n"...)
	worker, err := file.WithShared(config.Default(), data)
	must.NoError(t, err)
	if worker.FlannelNetwork.String() != "10.9.0.0/16" || worker.FlannelBackend != "host-gw" || worker.FlannelIPMasq ||
		worker.NetInterface != "" {
		t.Errorf("%+v", worker)
	}
}

func TestTokenFile(t *testing.T) {
	path := write(t, "abcdef.0123456789abcdef\n")
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags, config.Worker)
	_ = flags.Parse([]string{"--token-file", path})
	cfg, from, err := Load("", hostEnv("TOKEN", "zzzzzz.zzzzzzzzzzzzzzzz"), flags)
	if err != nil || cfg.Token != "abcdef.0123456789abcdef" || from["token"].Source != config.FromFlag {
		t.Errorf("%v %v", from["token"], err)
	}
}

func TestClusterEnv(t *testing.T) {
	cfg, _, err := Load("", ClusterEnv(env("K8S_DIND_FLANNEL_BACKEND", "ipip")), nil)
	if err != nil || cfg.FlannelBackend != "ipip" {
		t.Errorf("%v %v", cfg.FlannelBackend, err)
	}
}

func TestArgsAreWhatWasGiven(t *testing.T) {
	cfg, from, err := Load("", hostEnv("FLANNEL_BACKEND", "ipip", "KUBE_BOOTSTRAP_NO_DEDICATED", "true", "TOKEN",
		"abcdef.0123456789abcdef", "MASTER_IP", "10.0.0.1"), nil)
	must.NoError(t, err)
	if got := strings.Join(cfg.Args(config.Master, from), " "); got != "--flannel-backend=ipip --no-dedicated=true" {
		t.Error(got)
	}
	if got := strings.Join(cfg.Args(config.Worker, from), " "); got != "--flannel-backend=ipip" {
		t.Error(got)
	}
}

func TestRegistryBlock(t *testing.T) {
	password := write(t, "s3cret\n")
	path := write(t, head+"registry:\n  address: reg.example.com:5000/k8s/\n  username: me\n  passwordFile: "+password+
		"\n  insecure: true\n")
	cfg, from, err := Load(path, hostEnv("KUBE_BOOTSTRAP_REGISTRY_CA", "/ca.crt"), nil)
	want := config.RegistrySettings{
		Address: "reg.example.com:5000/k8s", Username: "me", Password: "s3cret", PasswordFile: password,
		CA: "/ca.crt", Insecure: true,
	}
	if err != nil || cfg.Registry != want || from["registry.insecure"].String() != "file "+path+":7" {
		t.Errorf("%+v %v %v", cfg.Registry, from, err)
	}
	view, err := file.View(cfg, from)
	if err != nil || strings.Contains(string(view), "s3cret") ||
		!strings.Contains(string(view), "registry:\n  address: reg.example.com:5000/k8s #") {
		t.Errorf("%v\n%s", err, view)
	}
	if saved, err := file.Marshal(cfg); err != nil || strings.Contains(string(saved), "registry") {
		t.Errorf("%v\n%s", err, saved)
	}
}

func TestRegistrySettingsGoTogether(t *testing.T) {
	for name, want := range map[string]string{
		"KUBE_BOOTSTRAP_REGISTRY_USERNAME": "registry.passwordFile: Required value: registry.username needs it; give " +
			"--registry-password-file or KUBE_BOOTSTRAP_REGISTRY_PASSWORD, or the field in the file",
		"KUBE_BOOTSTRAP_REGISTRY_PASSWORD": "registry.username: Required value: registry.password needs it; give " +
			"--registry-username, or the field in the file",
		"KUBE_BOOTSTRAP_REGISTRY_CERT": "registry.key: Required value: registry.cert needs it; give --registry-key, " +
			"or the field in the file",
	} {
		cfg, _, err := Load("", hostEnv(name, "x"), nil)
		must.NoError(t, err)
		if err := cfg.Validate("").ToAggregate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestTheVariableThatWasSetIsNamed(t *testing.T) {
	_, from, err := Load("", ClusterEnv(env("K8S_DIND_NUM_NODES", "4", "KUBE_BOOTSTRAP_MASTERS", "3")), nil)
	if err != nil || from["workers"].Where != "K8S_DIND_NUM_NODES" ||
		from["masters"].Where != "KUBE_BOOTSTRAP_MASTERS" {
		t.Errorf("%v, %v", from, err)
	}
}

// TestEverySettingCanBeKept: what a flag or a variable has taken must not fail when it is saved.
func TestEverySettingCanBeKept(t *testing.T) {
	cfg, _, err := Load("", hostEnv(config.EnvName("oidc-client-id"), "a\xff"), nil)
	if err == nil || !strings.Contains(err.Error(), "must be text in UTF-8") {
		t.Errorf("a text that YAML does not have is taken: %v", err)
	}
	file.Shared(cfg)
	if cfg, _, err = Load("", hostEnv(config.EnvName("registry-password"), "a\xff"), nil); err != nil ||
		cfg.Registry.Password != "a\xff" {
		t.Errorf("a password is not taken: %v", err)
	}
	if _, err := file.Marshal(cfg); err != nil {
		t.Error(err)
	}
}
