package source

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestComponentNames(t *testing.T) {
	for _, c := range []struct{ flag, value, want string }{
		{"apiserver-arg", "v=4", ""},
		{"apiserver-arg", "enable-admission-plugins=AlwaysPullImages,NamespaceExists", ""},
		{"apiserver-arg", "disable-admission-plugins=PodSecurity", ""},
		{"controller-manager-arg", "{node-monitor-grace-period: 20s, v: 2}", ""},
		{"scheduler-arg", "leader-elect-lease-duration=20s", ""},
		{"etcd-arg", "feature-gates=InitialCorruptCheck=true", ""},
		{"feature-gates", "AllAlpha=false,APIServerIdentity=true", ""},
		{"apiserver-arg", "enable-admision-plugins=x",
			`"enable-admision-plugins": is no flag of kube-apiserver v1.37.2, did you mean enable-admission-plugins?`},
		{"scheduler-arg", "node-monitor-grace-period=20s",
			"is no flag of kube-scheduler v1.37.2; --help of the component"},
		{"etcd-arg", "snapshot-cout=1", "did you mean snapshot-count?"},
		{"apiserver-arg", "etcd-servers=http://x", "cannot be set here: the API server uses the etcd"},
		{"apiserver-arg", "secure-port=1", "use apiServerPort"},
		{"apiserver-arg", "tls-min-version=VersionTLS10", "cannot be set here: the certificates"},
		{"apiserver-arg", "anonymous-auth=true", "cannot be set here"},
		{"apiserver-arg", "authorization-mode=AlwaysAllow", "cannot be set here"},
		{"apiserver-arg", "encryption-provider-config=/x", "cannot be set here"},
		{"apiserver-arg", "client-ca-file=/x", "cannot be set here"},
		{"apiserver-arg", "feature-gates=A=true", "use featureGates"},
		{"apiserver-arg", "disable-admission-plugins=PodSecurity,NodeRestriction", "cannot contain NodeRestriction"},
		{"scheduler-arg", "emulated-version=1.36", "cannot be set here: only an upgrade sets it"},
		{"controller-manager-arg", "leader-elect=false", "follows the number of control planes"},
		{"etcd-arg", "unsafe-no-fsync=true", "a power failure"},
		{"kubelet-arg", "max-pods=50", ""},
		{"kubelet-arg", "node-labels=a=b", "use nodeLabels"},
		{"kubelet-arg", "anonymous-auth=true", "cannot be set here"},
		{"kubelet-arg", "max-pod=50", "is no flag of kubelet v1.37.2, did you mean max-pods?"},
		{"kube-proxy-config", "{mode: nftables, iptables: {masqueradeAll: true}}", ""},
		{"kube-proxy-config", "{mod: nftables}", `unknown field "mod"`},
		{"kube-proxy-config", "{mode: ipvs}", `mode must be iptables or nftables, not "ipvs"`},
		{"kube-proxy-config", "{clusterCIDR: 10.0.0.0/8}", "use flannelNetwork"},
		{"kube-proxy-config", "{featureGates: {A: true}}", "use featureGates"},
		{"kube-proxy-config", "{conntrack: {min: 1}}", "may not write the sysctls"},
		{"audit-policy", "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Metadata}]}", ""},
		{"audit-policy", "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{levl: Metadata}]}",
			`unknown field "levl"`},
		{"audit-policy", "{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Much}]}",
			"is no policy that the API server accepts"},
		{"audit-policy", "{apiVersion: audit.k8s.io/v1, kind: Policy}", "is no policy that the API server accepts"},
		{"audit-policy", "{kind: Policy, rules: [{level: Metadata}]}",
			`must have the lines "apiVersion: audit.k8s.io/v1"`},
		{"audit-policy-file", "/nowhere", "auditPolicyFile: Invalid value"},
		{"audit-policy-file", "load.go", "auditPolicyFile: Invalid value: \"load.go\": its content must be fields"},
		{"oidc-issuer-url", "https://id.example.com", "oidc.clientID: Required value"},
		{"oidc-issuer-url", "http://id.example.com",
			"oidc.issuerURL: Invalid value: \"http://id.example.com\": must be an https URL"},
		{"oidc-client-id", "x", "oidc.issuerURL: Required value"},
		{"oidc-groups-prefix", "-", "must be a word that no group"},
		{"oidc-ca", "nothing", "must be certificates in PEM"},
		{"feature-gates", "APIServerIdentiy=true",
			"is no alpha or beta feature gate of Kubernetes v1.37.2, did you mean APIServerIdentity?"},
		{"apiserver-arg", "--v=4", "must be NAME=VALUE"},
		{"apiserver-arg", "v", "must be NAME=VALUE"},
		{"apiserver-arg", "{v: [1]}", "must be NAME=VALUE"},
		{"feature-gates", "AllAlpha=maybe", "AllAlpha=maybe must be true or false"},
	} {
		flags := pflag.NewFlagSet("", pflag.ContinueOnError)
		AddFlags(flags, config.Master)
		must.NoError(t, flags.Parse([]string{"--" + c.flag, c.value}))
		cfg, origins, err := Load("", noEnv, flags)
		if err == nil {
			err = origins.Tell(cfg.Validate(config.RoleControlPlane))
		}
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("--%s %s: got %v, want %q", c.flag, c.value, err, c.want)
		}
	}
}

// TestComponentsEverywhere takes the same values from a file and from flags, and
// keeps them in the saved and in the shared settings.
func TestComponentsEverywhere(t *testing.T) {
	path := write(t, head+`components:
  apiserver: {extraArgs: {v: 4, enable-admission-plugins: "AlwaysPullImages,NamespaceExists"}}
  etcd:
    extraArgs:
      snapshot-count: 20000
featureGates: {APIServerIdentity: true, AllAlpha: false}
`)
	fromFile, _, err := Load(path, noEnv, nil)
	must.NoError(t, err)
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	AddFlags(flags, config.Master)
	if err := flags.Parse([]string{"--apiserver-arg=v=4", "--apiserver-arg",
		"enable-admission-plugins=AlwaysPullImages,NamespaceExists",
		"--etcd-arg={snapshot-count: 20000}", "--feature-gates", "APIServerIdentity=true,AllAlpha=false"}); err != nil {
		t.Fatal(err)
	}
	fromFlags, _, err := Load("", noEnv, flags)
	must.NoError(t, err)
	saved, err := file.Marshal(fromFlags)
	must.NoError(t, err)
	kept, err := file.ReadSaved(write(t, string(saved)))
	must.NoError(t, err)
	joined, err := file.WithShared(config.Default(), file.Shared(fromFlags))
	must.NoError(t, err)
	for name, got := range map[string]config.Config{
		"file": fromFile, "flags": fromFlags, "saved": kept, "joined": joined,
	} {
		if got := got.ExtraArgs("kube-apiserver"); len(got) != 3 || got["v"] != "4" ||
			got["feature-gates"] != "APIServerIdentity=true,AllAlpha=false" ||
			got["enable-admission-plugins"] != "AlwaysPullImages,NamespaceExists" {
			t.Errorf("%s: kube-apiserver has %v", name, got)
		}
		if got := got.ExtraArgs("etcd"); len(got) != 1 || got["snapshot-count"] != "20000" {
			t.Errorf("%s: etcd has %v", name, got)
		}
	}
}

func TestMistypedBlocks(t *testing.T) {
	for file, want := range map[string]string{
		"components: {apiServer: {extraArgs: {v: 1}}}": "components.apiServer: unknown field",
		"components: {apiserver: {extraArg: {v: 1}}}": "components.apiserver.extraArg: unknown field, did you " +
			"mean components.apiserver.extraArgs?",
		"components: {apiserver: [v]}":                     "components.apiserver: must be a block of fields",
		"components: {apiserver: {extraArgs: [a]}}":        "components.apiserver.extraArgs: ",
		"components: {apiserver: {extraArgs: {v: [1,2]}}}": "must be names with single values",
	} {
		if _, _, err := Load(write(t, head+file+"\n"), noEnv, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", file, err, want)
		}
	}
}
