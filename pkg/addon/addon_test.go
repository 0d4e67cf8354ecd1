package addon

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	proxy "k8s.io/kube-proxy/config/v1alpha1"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func variants() map[string]Applier {
	full := Values{
		ProxyImage: "registry.k8s.io/kube-proxy:v1.36.3", DNSImage: "registry.k8s.io/coredns/coredns:v1.14.2",
		Server: "https://10.0.0.1:6443", PodServer: "10.0.0.1:6443", Forward: "/etc/resolv.conf",
		PodCIDR: netip.MustParsePrefix("10.1.0.0/16"), DNSDomain: "cluster.local",
		DNSIP:     netip.MustParseAddr("10.96.0.10"),
		ClusterCA: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"),
	}
	bare := full
	bare.PodServer, bare.Forward = "", ""
	return map[string]Applier{"full": with(full), "bare": with(bare)}
}

func with(s Values) Applier {
	return Applier{Values: func() (Values, error) { return s, nil }}
}

func TestManifestsGolden(t *testing.T) {
	for name, addons := range variants() {
		got, err := addons.Manifests()
		must.NoError(t, err)
		hosttest.Golden(t, name+".yaml", got)
	}
}

// The API knows every kind of object and every field in the manifests.
func TestManifestsStrict(t *testing.T) {
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	for name, addons := range variants() {
		for _, o := range objects(t, addons) {
			data, err := o.MarshalJSON()
			must.NoError(t, err)
			if _, _, err := codecs.UniversalDeserializer().Decode(data, nil, nil); err != nil {
				t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// One of about 2,000 hashes consists of digits. Without quotes it is a number in YAML,
// which the API server refuses as an annotation.
func TestAHashOfDigitsIsAString(t *testing.T) {
	number := regexp.MustCompile(`^[1-9]\d+$`)
	settings, err := variants()["full"].Values()
	must.NoError(t, err)
	for i := 0; !number.MatchString(Hash(string(settings.ClusterCA))); i++ {
		settings.ClusterCA = []byte(strconv.Itoa(i))
	}
	for _, o := range objects(t, with(settings)) {
		if _, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "metadata",
			"annotations"); err != nil {
			t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
		}
	}
	files, err := manifests.ReadDir("manifests")
	must.NoError(t, err)
	for _, file := range files {
		text, err := manifests.ReadFile("manifests/" + file.Name())
		if err != nil || strings.Contains(string(text), ": {{hash") {
			t.Errorf("%s: a hash without quotes, or %v", file.Name(), err)
		}
	}
}

// The manifests of contained addons render, and each object has the label by which it
// is removed.
func TestContainedAddons(t *testing.T) {
	codecs := serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict)
	settings, err := variants()["full"].Values()
	must.NoError(t, err)
	settings.MetricsImage, settings.LocalPathImage, settings.HelperImage, settings.VolumesDir = "m:v1", "l:v1",
		"h:v1", "/volumes"
	settings.ControllerImage, settings.SpeakerImage = "c:v1", "s:v1"
	for _, text := range []string{"10.0.0.0/24", "fd00::1-fd00::9"} {
		r, err := addresses.Parse(text)
		must.NoError(t, err)
		settings.LoadBalancerAddresses = append(settings.LoadBalancerAddresses, r)
	}
	settings.KubeletCA = settings.ClusterCA
	for _, name := range extension.ContainedAddons {
		text, err := with(settings).Named(name)
		must.NoError(t, err)
		all, err := kube.Objects(text)
		must.NoError(t, err)
		for _, o := range all {
			if got := o.GetLabels()[label]; got != name {
				t.Errorf("%s: %s %s has the label %q", name, o.GetKind(), o.GetName(), got)
			}
			data, err := o.MarshalJSON()
			must.NoError(t, err)
			if _, _, err := codecs.UniversalDeserializer().Decode(data, nil, nil); err != nil &&
				!runtime.IsNotRegisteredError(err) {
				t.Errorf("%s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// TestWhereTokensOfRootAre: the token of a pod that can create any pod is on no worker.
func TestWhereTokensOfRootAre(t *testing.T) {
	settings, err := variants()["full"].Values()
	must.NoError(t, err)
	settings.VolumesDir = "/volumes"
	text, err := with(settings).Named(extension.AddonLocalPath)
	must.NoError(t, err)
	all, err := kube.Objects(text)
	must.NoError(t, err)
	for _, o := range all {
		if o.GetKind() != "Deployment" {
			continue
		}
		on, _, err := unstructured.NestedStringMap(o.Object, "spec", "template", "spec", "nodeSelector")
		if _, only := on["node-role.kubernetes.io/control-plane"]; err != nil || !only {
			t.Errorf("%s runs on %v, %v", o.GetName(), on, err)
		}
	}
}

func TestClaims(t *testing.T) {
	one := corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "pvc-1"}}
	one.Spec.ClaimRef = &corev1.ObjectReference{Namespace: "default", Name: "data"}
	for n, want := range []string{
		"the data of PersistentVolume pvc-1, of PersistentVolumeClaim default/data, depends on it",
		"the data of PersistentVolume pvc-1, of PersistentVolumeClaim default/data, and 1 more depend on it",
	} {
		if got := claims([]corev1.PersistentVolume{one, one}[:n+1]); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestProxyConfigStrict(t *testing.T) {
	for name, addons := range variants() {
		for _, o := range objects(t, addons) {
			if o.GetKind() != "ConfigMap" || o.GetName() != "kube-proxy" {
				continue
			}
			var cm corev1.ConfigMap
			must.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, &cm))
			var config proxy.KubeProxyConfiguration
			if err := yaml.UnmarshalStrict([]byte(cm.Data["config.conf"]), &config); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if *config.Conntrack.MaxPerCore != 0 || config.EnableProfiling || config.ClusterCIDR != "10.1.0.0/16" {
				t.Errorf("%s: %+v", name, config)
			}
			if _, err := clientcmd.Load([]byte(cm.Data["kubeconfig.conf"])); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestProxyFields(t *testing.T) {
	s, err := variants()["full"].Values()
	must.NoError(t, err)
	before, err := s.ProxyConfig()
	must.NoError(t, err)
	s.ProxyFields = `{"mode":"nftables","iptables":{"syncPeriod":"1m"},"featureGates":{"AllAlpha":false}}`
	text, err := s.ProxyConfig()
	var config proxy.KubeProxyConfiguration
	if err == nil {
		err = yaml.UnmarshalStrict([]byte(text), &config)
	}
	must.NoError(t, err)
	if config.Mode != "nftables" || config.IPTables.SyncPeriod.Minutes() != 1 ||
		config.IPTables.MinSyncPeriod.Milliseconds() != 200 ||
		config.ClusterCIDR != "10.1.0.0/16" || len(config.FeatureGates) != 1 || text == before {
		t.Errorf("got\n%s", text)
	}
}

// Neither lists nor empty documents make a difference.
func TestObjects(t *testing.T) {
	got, err := kube.Objects([]byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: one}\n---\n---\n" +
		"apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Namespace, metadata: {name: two}}\n---\n"))
	if err != nil || len(got) != 2 || got[0].GetName() != "one" || got[1].GetName() != "two" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := kube.Objects([]byte("kind: Pod\n")); err == nil {
		t.Error("an object without a name was taken")
	}
}

func objects(t *testing.T, addons Applier) []*kube.Object {
	t.Helper()
	text, err := addons.Manifests()
	must.NoError(t, err)
	all, err := kube.Objects(text)
	must.NoError(t, err)
	return all
}
