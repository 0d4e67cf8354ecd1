package machines

import (
	"maps"
	"net/netip"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// TestLabelsOfAMachine: a newer program must find the machines of an older program.
func TestLabelsOfAMachine(t *testing.T) {
	m := Definition{
		Name: "k-master-1", Cluster: "k", Image: "kube-bootstrap/host:a", Command: []string{"/init"},
		StopSignal: "SIGINT", Network: "k",
		Addr: netip.MustParseAddr("10.192.0.2"), Aliases: []string{"control-plane"},
		Volumes:  map[string]string{"/var/lib": "k-master-1-var-lib"},
		Mounts:   []docker.Mount{{Source: "/a", Target: "/b", ReadOnly: true}},
		Ports:    []docker.PortMapping{{HostPort: 80, Port: 81, Protocol: "tcp"}},
		NanoCPUs: 1, Memory: 2, Weight: 3, Labels: map[string]string{"a": "b"}, EngineHost: EngineHost{Modules: true},
		RootFS: "c",
	}
	want := map[string]string{
		"a": "b", "kube-bootstrap.dev/owner": "cluster", "kube-bootstrap.dev/cluster": "k",
		"kube-bootstrap.dev/machine": `{"Name":"k-master-1","Cluster":"k","Image":"kube-bootstrap/host:a","Command":["/init"],` +
			`"StopSignal":"SIGINT","Network":"k","Addr":"10.192.0.2","Aliases":["control-plane"],"Volumes":{"/var/lib":"k-master-1-var-lib"},` +
			`"Mounts":[{"Source":"/a","Target":"/b","ReadOnly":true,"Shared":false}],"Ports":[{"HostIP":"","HostPort":80,"Port":81,"Protocol":"tcp"}],` +
			`"NanoCPUs":1,"Memory":2,"Weight":3,"Labels":{"a":"b"}}`,
	}
	if got := m.labels(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
