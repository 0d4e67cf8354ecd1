//go:build e2e

package long

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// wall is a program that manages the firewall of a host, and what happens to it.
type wall struct {
	name    string
	on, off string
	others  string // files of the other program, which must not change
	refused []refusal
	events  []wallEvent
}

// refusal is a setting that preflight must refuse, and how to take it back.
type refusal struct{ set, problem, reset string }

// wallEvent is something that happens on a host.
type wallEvent struct{ name, do string }

const (
	dockerRestart = "systemctl restart docker"
	// The test host's own rules, which lead to the resolver of its engine, stay.
	flush = `iptables-save -t nat | grep -E "^(\*nat|COMMIT)$|DOCKER_(OUTPUT|POSTROUTING)" >/run/resolver
nft flush ruleset && iptables-restore --noflush </run/resolver && rm /run/resolver`
	strict = `sed -i "s/^StrictForwardPorts=.*/StrictForwardPorts=%s/" /etc/firewalld/firewalld.conf && ` +
		`systemctl restart firewalld`
	// The first reload reads the setting, the second follows it.
	flushAll = `sed -i "s/^FlushAllOnReload=.*/FlushAllOnReload=%s/" /etc/firewalld/firewalld.conf && ` +
		`firewall-cmd --reload && firewall-cmd --reload`
)

var walls = []wall{{
	name:    "firewalld",
	on:      "systemctl unmask firewalld && systemctl enable --now firewalld && systemctl restart docker",
	off:     "systemctl disable --now firewalld && systemctl restart docker",
	others:  "/etc/ufw /etc/default/ufw",
	refused: []refusal{{fmt.Sprintf(strict, "yes"), "[firewalld-strict]", fmt.Sprintf(strict, "no")}},
	events: []wallEvent{
		{"FlushAllOnReload=no, reloaded", fmt.Sprintf(flushAll, "no")},
		{"FlushAllOnReload=yes, reloaded", fmt.Sprintf(flushAll, "yes")}, // the default
		{"firewalld restarted", "systemctl restart firewalld"},
		{"ruleset flushed", flush},
		{"Docker restarted", dockerRestart},
	},
}, {
	name: "ufw",
	// ufw sets sysctls of links that are created later. At a boot it starts before Docker.
	on: "ufw default deny incoming && ufw default deny routed && ufw allow 22/tcp && ufw --force enable && " +
		"systemctl stop docker.socket docker && ip link delete docker0 && systemctl start docker",
	off:    "ufw --force disable",
	others: "/etc/firewalld",
	events: []wallEvent{
		{"chains emptied", "iptables -F"},
		{"ruleset flushed", flush},
		{"Docker restarted", dockerRestart},
		{"ufw reloaded", "ufw reload && ufw reload"}, // the first is for the flush, the second has chains
	},
}}

// TestFirewalls is for hosts with firewalld or ufw, both as they are by default, with everything
// denied that they deny. Before one of them is turned on, kube-bootstrap must not mention them.
func TestFirewalls(t *testing.T) {
	made := hosts.New(t, "firewalls", "10.139.2.0/24", "e2e-walls", "e2e-wall")
	master, target := made[0], made[1]
	for _, m := range made {
		isolate(t, m)
		hosts.Owned(t, m)
	}
	if says := master.Sh(t, "kube-bootstrap master --dry-run --bundle "+hosts.Bundle+" 2>&1"); strings.Contains(says,
		"ufw") || strings.Contains(says, "firewalld") {
		t.Errorf("a dry run would change a firewall that is off:\n%s", says)
	}
	client := outside(t, target)
	for _, w := range walls {
		if !t.Run(w.name, func(t *testing.T) { w.stands(t, client, master, target) }) {
			return // the hosts are not bare
		}
	}
}

// stands takes a cluster of two hosts with the firewall through its life.
func (w wall) stands(t *testing.T, client, master, target hosts.Machine) {
	made := []hosts.Machine{master, target}
	var before, others []string
	for _, m := range made {
		m.Sh(t, w.on+" && docker start owner-once")
	}
	for _, r := range w.refused {
		r.isNamed(t, master)
	}
	t.Run("contract", func(t *testing.T) { hostTest(t, target, "../../pkg/firewall") })
	// The test of ufw empties Docker's chains as well. systemd refuses a fourth start within a minute.
	target.Sh(t, "systemctl reset-failed docker && "+dockerRestart+" && docker start owner-once")
	for _, m := range made {
		before = append(before, m.World(t))
		others = append(others, m.Sh(t, "find "+w.others+" -type f | sort | xargs md5sum"))
	}
	clusters.Up(t, master, target, "")
	clusters.Again(t, made...)
	traffic.Packets(t, master, made...)
	startTargets(t, master, target)
	clusters.Spread(t, master)
	w.heals(t, target, client, append(waysTo(client, master, target), waysToIsolated(target)...))
	for i, m := range made {
		if now := m.Sh(t, "find "+w.others+" -type f | sort | xargs md5sum"); now != others[i] {
			t.Errorf("%s: a firewall that is off was changed:\n%s\nthen\n%s", m.Name, others[i], now)
		}
		m.Sh(t, "docker rm -f app >/dev/null 2>&1; docker network rm app >/dev/null 2>&1; "+
			"docker update --restart unless-stopped owner; "+clusters.Settled)
	}
	clusters.Down(t, target, master)
	for i, m := range made {
		m.SameWorld(t, "a cluster with "+w.name+", then turndown,", before[i])
		m.Sh(t, w.off)
	}
}

func (r refusal) isNamed(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Sh(t, r.set)
	says, err := m.Try(t.Context(), "kube-bootstrap preflight master --bundle "+hosts.Bundle+" 2>&1")
	if err == nil || !strings.Contains(says, r.problem) {
		t.Errorf("preflight does not name %s: %v\n%s", r.problem, err, says)
	}
	m.Sh(t, r.reset)
}

// heals lets everything happen to the firewall of the addressed host, and prints for how long no packet
// arrived.
func (w wall) heals(t *testing.T, target, client hosts.Machine, ways []passage) {
	table := [][]string{arrive(t, target, ways)}
	columns := []string{"none"}
	for _, e := range w.events {
		t.Run(e.name, func(t *testing.T) {
			gap := longestSilence(t, client, "http://"+fmt.Sprint(target.IP, ":", exposed[0].port)+"/", func() {
				target.Sh(t, e.do)
				table, columns = append(table, arrive(t, target, ways)), append(columns, e.name)
			})
			t.Logf("%s, %s: a packet every 200 ms, the longest time without an answer: %s", w.name, e.name, gap)
		})
	}
	t.Log("how long after each event a packet arrived\n" + tabulated(ways, columns, table))
}

// longestSilence sends a request every 200 ms while do runs, each by a new connection, and returns
// the longest time between two answers.
func longestSilence(t *testing.T, client hosts.Machine, url string, do func()) time.Duration {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	answers := make(chan string, 1)
	client.Sh(t, "rm -f /tmp/silence && touch /tmp/asking")
	go func() {
		const ask = `while [ -e /tmp/asking ]; do
(timeout 2 probe get %s >/dev/null 2>&1 && date +%%s%%3N >>/tmp/silence) &
sleep 0.2; done; wait; sort -n /tmp/silence`
		out, _ := client.Try(ctx, fmt.Sprintf(ask, url))
		answers <- out
	}()
	defer stop()
	do()
	client.Sh(t, "rm -f /tmp/asking")
	var at []int
	for word := range strings.FieldsSeq(<-answers) {
		ms, err := strconv.Atoi(word)
		if err != nil {
			t.Fatalf("not a time: %q", word)
		}
		at = append(at, ms)
	}
	if len(at) < 2 {
		t.Fatal("no answers")
	}
	gaps := make([]int, 0, len(at))
	for i := range at[1:] {
		gaps = append(gaps, at[i+1]-at[i])
	}
	return time.Duration(slices.Max(gaps)) * time.Millisecond
}
