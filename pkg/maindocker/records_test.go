package maindocker

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// damages are what may have become of a record.
var damages = map[string]string{"empty": "", "garbage": "\x00\xff{{garbage: [\n\"x", "cut": `{"absent":fal`, "another value": `{}`}

// moved is a host whose daemon.json was the owner's and has our settings.
func moved(t *testing.T, owner string) Bridge {
	t.Helper()
	b := Bridge{Files: host.Files{Root: t.TempDir()}}
	if owner != "" {
		write(t, b.Files, owner)
	}
	put(t, b.Files, lease)
	if err := addressRecord.Write(b.Files, netip.MustParsePrefix("172.18.0.1/16")); err != nil {
		t.Fatal(err)
	}
	return b
}

func damage(t *testing.T, files host.Files, path, content string) {
	t.Helper()
	if err := files.Write(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestADamagedAddressIsNotWritten: the content of the record must not reach
// daemon.json, with which Docker would not start any more.
func TestADamagedAddressIsNotWritten(t *testing.T) {
	for name, content := range damages {
		t.Run(name, func(t *testing.T) {
			b := moved(t, `{"mtu": 9000}`)
			damage(t, b.Files, addressRecord.Path, content)
			var left []string
			ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
			data, err := b.settingsBefore(ctx)
			if err != nil {
				t.Fatal(err)
			}
			back, err := decode(data)
			bip, _ := back["bip"].(string)
			address, parseErr := netip.ParsePrefix(bip)
			if err != nil || parseErr != nil || validAddress(address) != nil {
				t.Errorf("daemon.json would be %s (%v, %v)", data, err, parseErr)
			}
			if len(left) != 1 || !strings.Contains(left[0], addressRecord.Path+" is damaged") {
				t.Errorf("reported: %q", left)
			}
		})
	}
}

// TestTheRecordOfDaemonJSON: without it, kube-bootstrap's keys are taken out.
// A run makes the record again, so that a later one finds it.
func TestTheRecordOfDaemonJSON(t *testing.T) {
	const record = host.StateDir + "/original/etc/docker/daemon.json.json"
	for name, content := range damages {
		for owner, want := range map[string]string{"": "", `{"debug": true}`: "{\n  \"debug\": true\n}\n"} {
			t.Run(name, func(t *testing.T) {
				b := moved(t, owner)
				damage(t, b.Files, record, content)
				if is, err := b.moved(); !is || err != nil {
					t.Errorf("moved: %t, %v", is, err)
				}
				if diff, err := b.recordsDiff(); len(diff) != 1 || err != nil || !strings.Contains(diff.String(), "is damaged") {
					t.Errorf("before: %s, %v", diff, err)
				}
				if lost, err := b.recoverOriginal(); lost == nil || err != nil {
					t.Errorf("recover: %v, %v", lost, err)
				}
				if diff, err := b.recordsDiff(); len(diff) > 0 || err != nil {
					t.Errorf("after: %s, %v", diff, err)
				}
				if err := unmergeFile(b.Files, daemonJSON); err != nil {
					t.Fatal(err)
				}
				if got, _ := b.Files.Read(daemonJSON); string(got) != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestALostRecordOfAFileThatIsTheOwners: there is nothing to take out.
func TestALostRecordOfAFileThatIsTheOwners(t *testing.T) {
	b := moved(t, "")
	const owners = `{"bip": "192.168.7.1/24"}`
	write(t, b.Files, owners)
	damage(t, b.Files, host.StateDir+"/original/etc/docker/daemon.json.json", "")
	lost, err := b.recoverOriginal()
	if lost != nil || err != nil {
		t.Errorf("recover: %v, %v", lost, err)
	}
	if is, err := b.moved(); is || err != nil {
		t.Errorf("moved: %t, %v", is, err)
	}
	if got, _ := b.Files.Read(daemonJSON); string(got) != owners {
		t.Errorf("got %q", got)
	}
}

func TestADamagedRestartIsStillOne(t *testing.T) {
	b := Bridge{Files: host.Files{Root: t.TempDir()}}
	for _, content := range []string{"", "{{", `{"containers": ["--rm"]}`} {
		damage(t, b.Files, pendingRecord.Path, content)
		if p := b.pending(); !b.isPending() || len(p.Containers) > 0 {
			t.Errorf("%q: %t %v", content, b.isPending(), p)
		}
	}
}

func TestDefaultAddress(t *testing.T) {
	taken := []host.Route{{Dst: netip.MustParsePrefix("172.17.0.0/16"), Link: "br-1"}, {Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth0"}, {Dst: netip.MustParsePrefix("172.18.0.0/16"), Link: "docker0"}}
	pools, err := decode([]byte(`{"default-address-pools": [{"base": "10.20.0.0/16", "size": 24}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := defaultAddress(settings{}, taken).String(); got != "172.18.0.1/16" {
		t.Errorf("got %s", got)
	}
	if got := defaultAddress(pools, taken).String(); got != "10.20.0.1/24" {
		t.Errorf("got %s from the owner's pool", got)
	}
}
