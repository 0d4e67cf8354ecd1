//go:build root

package maindocker

import (
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/netfilter"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// What Docker makes, in the versions that differ.
const (
	natOfDocker = `
	iptables -t nat -N DOCKER
	iptables -t nat -A PREROUTING -m addrtype --dst-type LOCAL -j DOCKER
	iptables -t nat -A OUTPUT ! -d 127.0.0.0/8 -m addrtype --dst-type LOCAL -j DOCKER
	iptables -N DOCKER-USER
	iptables -N DOCKER`
	docker26 = natOfDocker + `
	iptables -A FORWARD -j DOCKER-USER
	iptables -A FORWARD -o docker0 -j DOCKER`
	docker28 = natOfDocker + `
	iptables -N DOCKER-FORWARD
	iptables -A DOCKER-FORWARD -i docker0 -j ACCEPT
	iptables -A FORWARD -j DOCKER-USER
	iptables -A FORWARD -j DOCKER-FORWARD`
)

func TestMissingChains(t *testing.T) {
	hosttest.InNetns(t)
	const user, forward = "the jump from FORWARD to DOCKER-USER (table filter)", "the rules for docker0"
	const nat = "the jump from PREROUTING to DOCKER (table nat), the jump from OUTPUT to DOCKER (table nat)"
	for _, c := range []struct{ docker, do, want string }{
		{docker26, "true", ""},
		{docker28, "true", ""},
		{docker26, "iptables -D FORWARD -j DOCKER-USER", user},
		{docker28, "iptables -D FORWARD -j DOCKER-USER", user},
		{docker26, "iptables -D FORWARD -o docker0 -j DOCKER", forward},
		{docker28, "iptables -F DOCKER-FORWARD", forward},
		{docker28, "iptables -F", user + ", " + forward},
		{docker28, "iptables -t nat -F", nat},
		{docker28, "nft flush ruleset", user + ", " + nat + ", " + forward},
	} {
		hosttest.Shell(t, c.docker)
		hosttest.Shell(t, c.do)
		chains, err := netfilter.ReadChains()
		must.NoError(t, err)
		if missing, err := missingChains(chains); err != nil || strings.Join(missing, ", ") != c.want {
			t.Errorf("%s: got %q, %v; want %q", c.do, missing, err, c.want)
		}
		hosttest.Shell(t, "nft flush ruleset")
	}
}
