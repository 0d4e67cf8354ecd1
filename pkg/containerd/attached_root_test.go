//go:build root

package containerd

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const notedPod = `{"kind":"cniCacheV1","containerId":"%[1]s","netns":"/run/netns/cni-%[1]s","cniArgs":[["K8S_POD_NAMESPACE","default"],["K8S_POD_NAME","%[1]s"]],
"result":{"interfaces":[{"name":"docker0"},{"name":"veth%[1]s"},{"name":"eth0","sandbox":"/run/netns/cni-%[1]s"}],"ips":[{"address":"%[2]s","interface":2}]}}`

func note(t *testing.T, files host.Files, pod, address string) {
	t.Helper()
	text := fmt.Sprintf(notedPod, pod, address)
	if err := errors.Join(files.Write("/var/lib/cni/results/kube-bootstrap-"+pod+"-eth0", []byte(text), 0o600),
		files.Write("/run/netns/cni-"+pod, nil, 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestFollowLease finds pods on another subnet and pods without their bridge. It
// ignores removed pods.
func TestFollowLease(t *testing.T) {
	hosttest.InNetns(t)
	hosttest.Shell(t, `
		ip link add docker0 type bridge
		ip link add vethhere type veth peer name a
		ip link set vethhere master docker0
		ip link add vethlost type veth peer name b`)
	files := host.Files{Root: t.TempDir()}
	for pod, address := range map[string]string{
		"here": "10.1.7.200/24", "lost": "10.1.7.201/24", "moved": "10.1.9.200/24", "gone": "10.1.9.201/24",
	} {
		note(t, files, pod, address)
	}
	must.NoError(t, errors.Join(files.Remove("/run/netns/cni-gone"),
		files.Write("/var/lib/cni/results/kube-bootstrap-cut-eth0", []byte("{"), 0o600)))
	leased := func() (subnet.Lease, error) {
		return subnet.Lease{Subnet: netip.MustParsePrefix("10.1.7.1/24"), MTU: 1450}, nil
	}
	const moved, lost = "recreate the pod default/moved: its address 10.1.9.200 is not in 10.1.7.0/24",
		"attach vethlost of the pod default/lost to docker0"
	s := FollowLease(files, "", leased)
	if diff, err := s.Check(t.Context()); err != nil || diff.String() != moved+"; "+lost {
		t.Errorf("got %q, %v", diff, err)
	}
	if err := files.Remove("/run/netns/cni-moved"); err != nil { // its sandbox is CRI's
		t.Fatal(err)
	}
	must.NoError(t, s.Apply(t.Context()))
	if diff, err := s.Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("after Apply: %q, %v", diff, err)
	}
	none := FollowLease(files, "", func() (subnet.Lease, error) { return subnet.Lease{}, errors.New("no lease") })
	if diff, err := none.Check(t.Context()); err != nil || len(diff) > 0 {
		t.Errorf("without a lease: %q, %v", diff, err)
	}
}

// TestClosedHostPorts removes the rules of portmap in each way.
func TestClosedHostPorts(t *testing.T) {
	hosttest.InNetns(t)
	files := host.Files{Root: t.TempDir()}
	note(t, files, "silent", "10.1.7.200/24")
	text := strings.Replace(fmt.Sprintf(notedPod, "web", "10.1.7.201/24"), `"result"`,
		`"capabilityArgs":{"portMappings":[{"hostPort":8080,"containerPort":80,"protocol":"tcp"}]},"result"`, 1)
	must.NoError(t, errors.Join(files.Write("/var/lib/cni/results/kube-bootstrap-web-eth0", []byte(text), 0o600),
		files.Write("/run/netns/cni-web", nil, 0o600)))
	for _, c := range []struct {
		do     string
		closed int
	}{
		{"true", 0},
		{"iptables -t nat -D PREROUTING -j CNI-HOSTPORT-DNAT", 1},
		{"iptables -t nat -F CNI-HOSTPORT-DNAT", 1},
		{"iptables -t nat -F CNI-DN-1", 1},
		{"nft flush ruleset", 1},
	} {
		hosttest.Shell(t, `
			iptables -t nat -N CNI-HOSTPORT-DNAT
			iptables -t nat -N CNI-DN-1
			iptables -t nat -A PREROUTING -j CNI-HOSTPORT-DNAT
			iptables -t nat -A OUTPUT -j CNI-HOSTPORT-DNAT
			iptables -t nat -A CNI-HOSTPORT-DNAT -p tcp -m comment --comment id:web -j CNI-DN-1
			iptables -t nat -A CNI-DN-1 -p tcp -j DNAT --to-destination 10.1.7.201:80`)
		hosttest.Shell(t, c.do)
		if closed, err := withoutHostPorts(files); err != nil || len(closed) != c.closed {
			t.Errorf("%s: %v, %v", c.do, closed, err)
		}
		hosttest.Shell(t, "nft flush ruleset")
	}
}

const rulesOfProxy = `
	iptables -t nat -N KUBE-SERVICES
	iptables -t nat -N KUBE-POSTROUTING
	iptables -N KUBE-FORWARD
	iptables -t nat -A PREROUTING -j KUBE-SERVICES
	iptables -t nat -A OUTPUT -j KUBE-SERVICES
	iptables -t nat -A POSTROUTING -j KUBE-POSTROUTING
	iptables -A FORWARD -j KUBE-FORWARD
	iptables -t nat -A KUBE-SERVICES -d 10.0.0.1/32 -j ACCEPT`

func TestMissingServices(t *testing.T) {
	hosttest.InNetns(t)
	files := host.Files{Root: t.TempDir()}
	if diff, err := missingServices(t.Context(), files); err != nil || len(diff) > 0 {
		t.Errorf("on a host without pods: %q, %v", diff, err)
	}
	must.NoError(t, files.Write(podsFile, nil, 0o600))
	const lacks = "restart kube-proxy, whose rules lack "
	for _, c := range []struct{ do, want string }{
		{"true", ""},
		{"iptables -t nat -F KUBE-SERVICES", lacks + "the rules of Services"},
		{"iptables -t nat -D OUTPUT -j KUBE-SERVICES", lacks + "the jump from OUTPUT to KUBE-SERVICES (table nat)"},
		{"iptables -F FORWARD", lacks + "the jump from FORWARD to KUBE-FORWARD (table filter)"},
	} {
		hosttest.Shell(t, rulesOfProxy)
		hosttest.Shell(t, c.do)
		if diff, err := missingServices(t.Context(), files); err != nil || diff.String() != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.do, diff, err, c.want)
		}
		hosttest.Shell(t, "nft flush ruleset")
	}
	if diff, err := missingServices(t.Context(), files); err != nil || len(diff) == 0 {
		t.Errorf("with an empty firewall: %q, %v", diff, err)
	}
	hosttest.Shell(t, "nft add table ip kube-proxy")
	if diff, err := missingServices(t.Context(), files); err != nil || len(diff) > 0 {
		t.Errorf("in the mode nftables: %q, %v", diff, err)
	}
}
