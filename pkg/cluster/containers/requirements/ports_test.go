package requirements

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func node(t *testing.T, name string, ports, mounts []string) topology.ClusterNode {
	t.Helper()
	return topology.ClusterNode{
		Name: name, Spec: topology.Spec{Ports: published(t, ports...), Mounts: mounted(t, mounts...)},
	}
}

func published(t *testing.T, texts ...string) (all []config.PublishedPort) {
	t.Helper()
	for _, text := range texts {
		p, err := config.ParsePort(text)
		must.NoError(t, err)
		all = append(all, p)
	}
	return all
}

func mounted(t *testing.T, texts ...string) (all []config.NodeMount) {
	t.Helper()
	for _, text := range texts {
		m, err := config.ParseMount(text)
		must.NoError(t, err)
		all = append(all, m)
	}
	return all
}

func TestPortsTwice(t *testing.T) {
	for _, c := range []struct {
		one, other []string
		want       int
	}{
		{[]string{"8080:1"}, []string{"8080:2"}, 1},
		{[]string{"8080:1", "8080:2"}, nil, 1},
		{[]string{"8080:1"}, []string{"8080:1/udp", "0.0.0.0:8080:1", "8081:1"}, 0},
	} {
		if errs := portsTwice([]topology.ClusterNode{node(t, "a", c.one, nil),
			node(t, "b", c.other, nil)}); len(errs) != c.want {
			t.Errorf("%v and %v: %v", c.one, c.other, errs)
		}
	}
}

func TestPortsTakenAndMountsMissing(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	dir := t.TempDir()
	nodes := []topology.ClusterNode{node(t, "a", []string{fmt.Sprintf("%d:80", port)},
		[]string{dir + ":/a", dir + "/none:/b"})}
	elsewhere := []topology.ClusterNode{node(t, "b", []string{fmt.Sprintf("127.0.0.2:%d:80", port)}, nil)}
	if err := portsTaken(elsewhere); err != nil {
		t.Errorf("the port of another address: %v", err)
	}
	text := errors.Join(portsTaken(nodes), mountsMissing(nodes)).Error()
	for _, want := range []string{
		fmt.Sprintf(`port "%d:80" is taken`, port), "/none:/b", "[node-port]", "[node-mount]",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	if strings.Contains(text, dir+":/a") {
		t.Errorf("a directory that exists: %s", text)
	}
	l.Close()
	if err := portsTaken(nodes); err != nil {
		t.Error(err)
	}
}
