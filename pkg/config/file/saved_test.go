package file

import (
	"reflect"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// everyKind has a setting of each kind of text, as a user writes it.
const everyKind = head + `kubernetesVersion: v1.37.2
flannelNetwork: 10.7.0.0/16
ipAddress: 192.0.2.7
dnsDomain: "no"
apiServerPort: 7443
noDedicated: true
addons: [local-path, metallb]
nodeLabels: {disk: ssd, tier: ""}
nodeTaints: ["dedicated=db:NoSchedule"]
nodeMemory: 2Gi
timeoutForServices: 7m
featureGates: {ContextualLogging: false}
kubeletConfig: {maxPods: 50, evictionHard: {memory.available: 5%}}
oidc: {issuerURL: "https://login.example.com", clientID: k8s}
`

func settings(t *testing.T, text string) config.Config {
	t.Helper()
	cfg := config.Default()
	must.NoError(t, Read(write(t, text), &cfg, config.Origins{}))
	return cfg.Complete()
}

func TestWhatAHostSavesIsWhatItReads(t *testing.T) {
	want := settings(t, everyKind)
	data, err := Marshal(want)
	must.NoError(t, err)
	got, err := ReadSaved(write(t, string(data)))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%v\n%+v\nwant\n%+v\nfrom\n%s", err, got, want, data)
	}
	again, err := Marshal(got)
	if err != nil || string(again) != string(data) {
		t.Errorf("saved again: %v\n%s\nwas\n%s", err, again, data)
	}
}

func TestNoSecretIsSaved(t *testing.T) {
	const secret = "0123456789abcdef"
	cfg := settings(t, everyKind+"token: abcdef."+secret+"\nignorePreflight: [swap]\n")
	cfg.Registry.Password = secret
	data, err := Marshal(cfg)
	if err != nil || strings.Contains(string(data), secret) || strings.Contains(string(data), "swap") {
		t.Errorf("%v\n%s", err, data)
	}
	if data := string(Shared(cfg)); strings.Contains(data, secret) {
		t.Errorf("other hosts get\n%s", data)
	}
}

// TestSavedSettingsOfOtherRuns: a host stays removable after an upgrade, and a file that a full
// disk cut is not taken for settings.
func TestSavedSettingsOfOtherRuns(t *testing.T) {
	for name, c := range map[string]struct{ text, wrong string }{
		"another version": {head + "fieldOfANewerVersion: {a: [1]}\nkeepImages: true\n", ""},
		"no header":       {"keepImages: true\n", ""},
		"empty":           {"", "it is empty"},
		"cut":             {head + "flannelNetwork: 10.7.0.0/16\n", "it is not complete"},
		"cut in a word":   {head + "keepIma", "read saved settings: "},
		"damaged":         {"\x00\x01", "read saved settings: "},
	} {
		got, err := ReadSaved(write(t, c.text))
		switch {
		case c.wrong == "" && (err != nil || !got.KeepImages):
			t.Errorf("%s: %v, %+v", name, err, got)
		case c.wrong != "" && (err == nil || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: got %v, want %s", name, err, c.wrong)
		}
	}
}

// TestAHostTakesOnlySharedSettings: a control plane cannot change the rest of a host that joins.
func TestAHostTakesOnlySharedSettings(t *testing.T) {
	first := settings(t, everyKind+"hostName: first\nflannelBackend: host-gw\n")
	own := settings(t, head+"hostName: second\nipAddress: 192.0.2.8\n")
	got, err := WithShared(own, Shared(first))
	must.NoError(t, err)
	if got.DNSDomain != "no" || got.FlannelBackend != "host-gw" || got.HostName != "second" ||
		got.IPAddress != own.IPAddress {
		t.Errorf("the host that joins has %+v", got)
	}
	got, err = WithShared(own, []byte(head+"hostName: other\nregistry: {password: x}\nunknown: {a: 1}\n"+
		"dnsDomain: k8s.lan\n"))
	must.NoError(t, err)
	if got.HostName != "second" || got.Registry.Password != own.Registry.Password || got.DNSDomain != "k8s.lan" {
		t.Errorf("the host that joins has %+v", got)
	}
}
