package config

import (
	"reflect"
	"testing"
)

// canonical contains texts that a setting of that kind or name reads and writes unchanged.
var canonical = map[string][]string{
	"bool": {"true", "false"}, "int": {"0", "6443"}, "duration": {"30s", "5m", "1h30m"},
	"list": {"a", "a,b"}, "mapping": {`{"maxPods":50}`}, "arguments": {`{"v":"4"}`}, "gates": {`{"AllAlpha":false}`},
	"string": {"a", "a b"},

	"flannelNetwork": {"10.1.0.0/16"}, "serviceNetwork": {"10.96.0.0/16"}, "dindSubnet": {"10.192.0.0/16"},
	"trustedNetworks": {"0.0.0.0/0", "10.1.0.0/16,10.3.0.0/24"},
	"ipAddress":       {"192.168.1.10"}, "masterIP": {"192.168.1.10"}, "dnsServerIP": {"10.96.0.10"},
	"loadBalancerAddresses": {"10.0.0.0/24", "10.0.0.9-10.0.0.9", "10.0.0.1-10.0.0.9,fd00::/120"},
	"registryMirrors":       {"docker.io=a.test:5000/hub", "docker.io=http://a.test,quay.io=b.test"},
	"ssh.port":              {"", "2222"},
	"downloadMirror":        {"https://a.test/files"}, "cniMirror": {"http://a.test:8080"},
	"oidc.issuerURL": {"https://id.example.com/a%2Fb/"},
	"nodeLabels":     {"disk=ssd", "a.test/zone=,b=c"},
	"nodeTaints":     {"x:NoExecute", "dedicated=db:NoSchedule,x:PreferNoSchedule"},
	"nodeCPUs":       {"1500m", "2"}, "nodeMemory": {"2Gi", "500Mi", "1G"}, "nodeDisk": {"10Gi"},
	"localRegistryCache": {"512Mi"},
	"nodePorts":          {"8080:30080", "0.0.0.0:53:30053/udp", "8080:80,127.0.0.2:8080:80"},
	"nodeMounts":         {"/srv/data:/data", "/a:/b:ro,/c:/d"},
	"cniPlugin":          {"calico", "/net.yaml", "https://example.com/net.yaml"}, "addons": {"metallb,/a.yaml"},
}

func set(t *testing.T, s Setting, c *Config, text string) {
	t.Helper()
	if err := s.Set(c, text); err != nil {
		t.Fatalf("%s: %q: %v", s.Field, text, err)
	}
}

// TestTextsAreWrittenAsTheyAreRead sets each row of the table to texts, and reads them back.
func TestTextsAreWrittenAsTheyAreRead(t *testing.T) {
	for _, s := range settings {
		texts, found := canonical[s.Field]
		if !found {
			texts = canonical[s.Kind()]
		}
		if s.Default != "" {
			texts = append(texts, s.Default)
		}
		for _, text := range texts {
			var c, again Config
			set(t, s, &c, text)
			if got := s.Get(c); got != text {
				t.Errorf("%s: %q is written as %q", s.Field, text, got)
			}
			set(t, s, &again, s.Get(c))
			if !reflect.DeepEqual(c, again) {
				t.Errorf("%s: %q is another value when it is read again", s.Field, text)
			}
			_ = s.Must(c) // panics if the check is for another type than the field's
		}
	}
}

// TestTheEmptyTextIsNoValue: `--node-memory=` resets an earlier value.
func TestTheEmptyTextIsNoValue(t *testing.T) {
	for _, s := range settings {
		if kind := s.Kind(); kind == "bool" || kind == "int" || kind == "duration" {
			continue
		}
		var c Config
		set(t, s, &c, canonicalOf(s))
		set(t, s, &c, "")
		if got := s.Get(c); got != "" {
			t.Errorf("%s: the empty text is %q", s.Field, got)
		}
		if got := s.Get(Config{}); got != "" {
			t.Errorf("%s: a value that is not set is %q", s.Field, got)
		}
	}
}

func canonicalOf(s Setting) string {
	if texts, found := canonical[s.Field]; found {
		return texts[0]
	}
	return canonical[s.Kind()][0]
}

// TestABadTextLeavesTheValue: the error says what the text must be.
func TestABadTextLeavesTheValue(t *testing.T) {
	for field, text := range map[string]string{
		"flannelNetwork": "10.1.0.0/16,fd00::/64", "serviceNetwork": "10.96.0.1/16", "dindSubnet": "fd00::/64",
		"trustedNetworks": "10.0.0.0/8,x",
		"ipAddress":       "fd00::1", "dnsServerIP": "::ffff:10.96.0.10", "loadBalancerAddresses": "10.0.0.1",
		"registryMirrors": "docker.io",
		"downloadMirror":  "ftp://a.test", "oidc.issuerURL": "http://a.test", "nodeLabels": "disk", "nodeTaints": "a=b",
		"nodeCPUs":   "0.01",
		"nodeMemory": "0", "nodeDisk": "-1Gi", "localRegistryCache": "much", "nodePorts": "80", "nodeMounts": "a:b",
	} {
		s, found := Find(field)
		var c Config
		set(t, s, &c, canonicalOf(s))
		if err := s.Set(&c, text); err == nil || !found || s.Get(c) != canonicalOf(s) {
			t.Errorf("%s: %q is read as %q, %v", field, text, s.Get(c), err)
		}
	}
}

// TestSpellingsOfOneValueAreEqual: a run with another spelling changes nothing.
func TestSpellingsOfOneValueAreEqual(t *testing.T) {
	for field, spellings := range map[string][2]string{
		"nodeCPUs": {"1.5", "1500m"}, "nodeMemory": {"1024Mi", "1Gi"}, "nodePorts": {"127.0.0.1:80:80/tcp", "80:80"},
		"nodeMounts":      {"/a/:/b", "/a:/b"},
		"nodeTaints":      {"a=:NoSchedule", "a:NoSchedule"},
		"registryMirrors": {"docker.io=https://a.test/", "docker.io=a.test"},
		"downloadMirror":  {"https://a.test/", "https://a.test"}, "timeoutForServices": {"300", "5m"},
		"trustedNetworks": {" 10.0.0.0/8, ", "10.0.0.0/8"},
	} {
		s, _ := Find(field)
		var one, other Config
		set(t, s, &one, spellings[0])
		set(t, s, &other, spellings[1])
		if !reflect.DeepEqual(one, other) || s.Get(one) != spellings[1] {
			t.Errorf("%s: %q is %q", field, spellings[0], s.Get(one))
		}
	}
}
