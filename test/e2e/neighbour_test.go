//go:build e2e

package e2e

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
)

// neighbour has the master send to a container of the worker past the overlay,
// as a host of the LAN does that is no part of the cluster: the container
// publishes its port on 127.0.0.1 only.
func neighbour(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	worker.Sh(t, "docker run -d --name local -p 127.0.0.1:8099:8080 "+hosts.ProbeImage+" /probe serve")
	defer worker.Sh(t, "docker rm -f local")
	strange(t, worker.IP, "10250")
	strange(t, master.IP, "10250", "2380")
	ip := worker.Sh(t, "docker inspect -f '{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}' local")
	code := "curl -s -o /dev/null -m 10 -w '%{http_code}' http://" + ip + ":8080/ || true"
	// the program in the container may still start
	hosts.Says(t, time.Minute, "the port by the overlay", master, code, "200")
	if !strings.Contains(master.Sh(t, "ip route get "+ip), "flannel") {
		return // without a link of its own, the overlay is the LAN
	}
	master.Sh(t, "ip route add "+ip+"/32 via "+worker.IP)
	defer master.Sh(t, "ip route del "+ip+"/32")
	if got := master.Sh(t, code); got != "000" {
		t.Errorf("a port published on 127.0.0.1 answers a neighbour: %s", got)
	}
}

// strange connects to ports of a host from this machine, which is no host of
// the cluster.
func strange(t *testing.T, ip string, ports ...string) {
	t.Helper()
	for _, port := range ports {
		conn, err := net.DialTimeout("tcp", net.JoinHostPort(ip, port), time.Second)
		if err == nil {
			conn.Close()
			t.Errorf("port %s of %s is open to a machine outside of the cluster", port, ip)
		}
	}
}
