package maindocker

import (
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

var lease = subnet.Lease{
	Network: netip.MustParsePrefix("10.1.0.0/16"), Subnet: netip.MustParsePrefix("10.1.7.1/24"), MTU: 1450,
}

// put merges our settings into the daemon.json of a host, as Move does.
func put(t *testing.T, files host.Files, l subnet.Lease) {
	t.Helper()
	now, err := readSettings(files)
	must.NoError(t, err)
	want, err := settingsFor(l, now, true)
	must.NoError(t, err)
	must.NoError(t, files.UserFile(daemonJSON).Replace(encode(merge(now, want)), 0o644))
}

func write(t *testing.T, files host.Files, text string) {
	t.Helper()
	must.NoError(t, files.Write(daemonJSON, []byte(text), 0o644))
}

func TestMergeKeepsTheOwnersKeys(t *testing.T) {
	owner, err := decode([]byte(`{"log-driver": "journald", "mtu": 9000, "max-concurrent-downloads": 12345678901234567890}`))
	must.NoError(t, err)
	ours, err := settingsFor(lease, owner, true)
	must.NoError(t, err)
	got := encode(merge(owner, ours))
	want := `{
  "bip": "10.1.7.1/24",
  "fixed-cidr": "10.1.7.0/25",
  "ip-masq": false,
  "log-driver": "journald",
  "max-concurrent-downloads": 12345678901234567890,
  "mtu": 1450
}
`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if diff := differences(merge(owner, ours), ours); len(diff) > 0 {
		t.Errorf("still differs: %s", diff)
	}
	if diff := differences(owner, ours).String(); !strings.Contains(diff, "mtu = 1450") ||
		strings.Contains(diff, "log-driver") {
		t.Errorf("diff: %s", diff)
	}
}

// TestTheSmallerMTU: also after the move, whose record has the user's value, and after an edit.
func TestTheSmallerMTU(t *testing.T) {
	for owner, want := range map[string]int{"": 1450, `{"mtu": 1300}`: 1300, `{"mtu": 9000}`: 1450} {
		files := host.Files{Root: t.TempDir()}
		write(t, files, owner)
		for range 2 { // the second time after the move
			got, err := Fit(files, lease)
			must.NoError(t, err)
			if got.MTU != want || got.Subnet != lease.Subnet {
				t.Errorf("%s: %+v", owner, got)
			}
			put(t, files, got)
		}
		must.NoError(t, files.Remove(daemonJSON))
		got, err := Fit(files, lease)
		if err != nil || got.MTU != want {
			t.Errorf("%s, deleted by another program: %+v, %v", owner, got, err)
		}
		put(t, files, got)
		must.NoError(t, files.Remove(host.StateDir+"/original/etc/docker/daemon.json.json"))
		if got, err := Fit(files, lease); err != nil || got.MTU != 1450 {
			t.Errorf("%s, without a record: %+v, %v", owner, got, err)
		}
	}
}

// TestKeepSettings: another program has rewritten or deleted daemon.json. Docker's next start must
// not lose flannel's subnet, and turndown keeps the key of that program.
func TestKeepSettings(t *testing.T) {
	for name, text := range map[string]string{"rewritten": `{"log-level": "warn"}`, "deleted": ""} {
		files := movedHost(t, `{"debug": true}`)
		must.NoError(t, files.Remove(daemonJSON))
		if text != "" {
			write(t, files, text)
		}
		keep := RestoreSettings(files, func() (subnet.Lease, error) { return lease, nil })
		if diff, err := keep.Check(t.Context()); err != nil || len(diff) == 0 {
			t.Errorf("%s: %s, %v", name, diff, err)
		}
		must.NoError(t, keep.Apply(t.Context()))
		diff, err := keep.Check(t.Context())
		now, readErr := readSettings(files)
		if err != nil || len(diff) > 0 || readErr != nil || now["bip"] != lease.Subnet.String() ||
			(now["log-level"] == "warn") != (text != "") {
			t.Errorf("%s: %s, %v, %v, %v", name, diff, now, err, readErr)
		}
	}
}

// TestDirectRouting: with rules of iptables, the setting opens ports that are
// published on 127.0.0.1 to the LAN. An older Docker does not know it.
func TestDirectRouting(t *testing.T) {
	nftables := settings{"firewall-backend": "nftables"}
	for _, c := range []struct {
		owner       settings
		known, want bool
	}{{settings{}, true, false}, {nftables, false, false}, {nftables, true, true}} {
		ours, err := settingsFor(lease, c.owner, c.known)
		if has := ours["allow-direct-routing"] == true; has != c.want || err != nil {
			t.Errorf("%v: got %v, %v", c.owner, ours, err)
		}
	}
}

func TestUnmerge(t *testing.T) {
	second := lease
	second.Subnet = netip.MustParsePrefix("10.1.9.1/24")
	cases := map[string]struct{ before, since, after string }{
		"exact bytes": {"{ \"mtu\":9000 }", "", "{ \"mtu\":9000 }"},
		"none":        {"", "", ""},
		"owner added a key": {`{"mtu": 9000}`,
			`{"bip": "10.1.9.1/24", "mtu": 1450, "fixed-cidr": "10.1.9.0/25", "ip-masq": false, "debug": true}`,
			"{\n  \"debug\": true,\n  \"mtu\": 9000\n}\n"},
		"user changed a written key": {"",
			`{"bip": "192.168.5.1/24", "mtu": 1450, "fixed-cidr": "10.1.9.0/25", "ip-masq": false}`,
			"{\n  \"bip\": \"192.168.5.1/24\"\n}\n"},
		"user reformatted the written keys": {"{ }\n",
			`{"mtu": 1450, "bip": "10.1.9.1/24",   "fixed-cidr": "10.1.9.0/25", "ip-masq": false}`, "{ }\n"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			files := host.Files{Root: t.TempDir()}
			if c.before != "" {
				write(t, files, c.before)
			}
			put(t, files, lease)
			put(t, files, second) // a new lease does not hide what was first
			if c.since != "" {
				write(t, files, c.since)
			}
			left := files.Path("/etc/docker/.kube-bootstrap-daemon.json-123")
			must.Write(t, left, "{") // by a run that was killed
			for range 2 {
				must.NoError(t, unmergeFile(t.Context(), files))
			}
			if _, err := os.Stat(left); !os.IsNotExist(err) {
				t.Errorf("%s is left: %v", left, err)
			}
			got, err := files.Read(daemonJSON)
			if string(got) != c.after || c.after == "" && !os.IsNotExist(err) {
				t.Errorf("got %q (%v), want %q", got, err, c.after)
			}
			if _, err := files.UserFile(daemonJSON).Original(); !os.IsNotExist(err) {
				t.Errorf("the original is still kept: %v", err)
			}
		})
	}
}

func TestDaemonJSONThatIsNot(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, text := range []string{"{", "[]", `{} {}`} {
		write(t, files, text)
		_, err := readSettings(files)
		if problems := step.Problems(err); len(problems) != 1 || problems[0].Name != "daemon-json" {
			t.Errorf("%q: got %v", text, err)
		}
	}
	for _, text := range []string{"", " \n", "null", "{}"} {
		write(t, files, text)
		if s, err := readSettings(files); err != nil || s == nil {
			t.Errorf("%q: got %v, %v", text, s, err)
		}
	}
}

func TestLowerHalf(t *testing.T) {
	for subnet, want := range map[string]string{
		"10.1.7.1/24": "10.1.7.0/25", "10.1.0.1/20": "10.1.0.0/21", "10.1.7.129/25": "10.1.7.128/26",
	} {
		if got := lowerHalf(netip.MustParsePrefix(subnet)).String(); got != want {
			t.Errorf("%s: got %s, want %s", subnet, got, want)
		}
	}
}

func TestOwnersMarkIsKept(t *testing.T) {
	owner := settings{"firewall-backend": "nftables", acceptMark: "0x1/0x3"}
	ours, err := settingsFor(lease, owner, true)
	if _, has := ours[acceptMark]; has || err != nil {
		t.Errorf("got %v, %v", ours, err)
	}
	f := firewallFor("flannel.1", lease, hosts, merge(owner, ours))
	if f.rules != nil || !strings.Contains(f.table.Body, `iifname "flannel.1" meta mark set meta mark or 0x1 `) {
		t.Errorf("got %+v", f)
	}
}
