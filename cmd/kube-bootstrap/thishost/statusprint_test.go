package thishost

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestStatusBeginsWithASummary(t *testing.T) {
	s := Status{
		Role: "master", Host: hostIdentity{"one", "192.0.2.1", "v1.37.2", "10.1.3.0/24"},
		Steps: []stepStatus{
			{Step: "start etcd", UpToDate: true}, {Step: "start the kubelet", Missing: []string{"start it"}},
			{Step: "wait", Error: "no answer"},
		},
		ControlPlanes: []balancer.Backend{{IP: "192.0.2.1", APIServer: true}, {IP: "192.0.2.2"}},
		Etcd: []etcd.MemberStatus{
			{IP: "192.0.2.1", Up: true, Healthy: true}, {IP: "192.0.2.2"}, {IP: "192.0.2.3", Up: true, Healthy: true},
		},
	}
	var out bytes.Buffer
	must.NoError(t, output.Table.Print(&out, "HostStatus", s, s.print))
	var first []string
	for _, line := range strings.Split(out.String(), "\n")[:7] {
		first = append(first, strings.Join(strings.Fields(line), " "))
	}
	want := "this host is a control plane\nhost one, 192.0.2.1\nKubernetes v1.37.2\nsubnet 10.1.3.0/24\nsteps 1 up " +
		"to date, 1 missing, 1 unknown\nAPI servers 1 of 2 ready\netcd 2 of 3 members healthy"
	if got := strings.Join(first, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
