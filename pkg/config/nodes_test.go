package config

import (
	"fmt"
	"testing"
)

func TestParsePort(t *testing.T) {
	for text, want := range map[string]string{
		"8080:30080":              "127.0.0.1 8080 30080 tcp",
		"0.0.0.0:53:30053/udp":    "0.0.0.0 53 30053 udp",
		"192.168.1.5:1:65535/tcp": "192.168.1.5 1 65535 tcp",
		"8080":                    "", "": "", "a:b": "", "0:80": "", "80:0": "", "80:65536": "", "80:80/sctp": "",
		"80:80/": "", "host:80:80": "", "::1:80:80": "", "1.2.3.4:5:6:7": "",
	} {
		p, err := ParsePort(text)
		if got := fmt.Sprintf("%s %d %d %s", p.Address, p.Port, p.NodePort, p.Protocol); want != "" && got != want ||
			(err == nil) != (want != "") {
			t.Errorf("%q: %s, %v, want %q", text, got, err, want)
		}
	}
}

func TestParseMount(t *testing.T) {
	for text, want := range map[string]NodeMount{
		"/srv/data:/data":    {"/srv/data", "/data", false},
		"/srv/data/:/a/b:ro": {"/srv/data", "/a/b", true},
		"/srv:/var/lib/data": {"/srv", "/var/lib/data", false},
		"/srv":               {}, "srv:/data": {}, "/srv:data": {}, "/srv:/data:rw": {}, "/srv:/": {},
		"/srv:/var/lib/": {}, "/srv:/x/../run": {}, "": {},
	} {
		m, err := ParseMount(text)
		if want.Path != "" && m != want || (err == nil) != (want.Path != "") {
			t.Errorf("%q: %v, %v", text, m, err)
		}
	}
}
