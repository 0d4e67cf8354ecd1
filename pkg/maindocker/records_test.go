package maindocker

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// damages are what may have become of a record.
var damages = map[string]string{
	"empty": "", "garbage": "\x00\xff{{garbage: [\n\"x", "cut": `{"absent":fal`, "another value": `{}`,
}

// movedHost is a host whose daemon.json was the owner's and has our settings.
func movedHost(t *testing.T, owner string) host.Files {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	if owner != "" {
		write(t, files, owner)
	}
	put(t, files, lease)
	must.NoError(t, addressRecord.Write(files, netip.MustParsePrefix("172.18.0.1/16")))
	return files
}

func damage(t *testing.T, files host.Files, path, content string) {
	t.Helper()
	must.NoError(t, files.Write(path, []byte(content), 0o600))
}

// TestADamagedAddressIsNotWritten: the content of the record must not reach
// daemon.json, with which Docker would not start any more.
func TestADamagedAddressIsNotWritten(t *testing.T) {
	for name, content := range damages {
		t.Run(name, func(t *testing.T) {
			files := movedHost(t, `{"mtu": 9000}`)
			damage(t, files, addressRecord.Path, content)
			var left []string
			ctx := step.WithLeft(t.Context(), func(what string) { left = append(left, what) })
			data, err := settingsBefore(ctx, files)
			must.NoError(t, err)
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
				files := movedHost(t, owner)
				damage(t, files, record, content)
				if is, err := moved(files); !is || err != nil {
					t.Errorf("moved: %t, %v", is, err)
				}
				if diff, err := recordsDiff(files); len(diff) != 1 || err != nil ||
					!strings.Contains(diff.String(), "is damaged") {
					t.Errorf("before: %s, %v", diff, err)
				}
				if lost, err := recoverOriginal(files); lost == nil || err != nil {
					t.Errorf("recover: %v, %v", lost, err)
				}
				if diff, err := recordsDiff(files); len(diff) > 0 || err != nil {
					t.Errorf("after: %s, %v", diff, err)
				}
				must.NoError(t, unmergeFile(t.Context(), files))
				if got, _ := files.Read(daemonJSON); string(got) != want {
					t.Errorf("got %q, want %q", got, want)
				}
			})
		}
	}
}

// TestALostRecordOfAFileThatIsTheOwners: there is nothing to take out.
func TestALostRecordOfAFileThatIsTheOwners(t *testing.T) {
	files := movedHost(t, "")
	const owners = `{"bip": "192.168.7.1/24"}`
	write(t, files, owners)
	damage(t, files, host.StateDir+"/original/etc/docker/daemon.json.json", "")
	lost, err := recoverOriginal(files)
	if lost != nil || err != nil {
		t.Errorf("recover: %v, %v", lost, err)
	}
	if is, err := moved(files); is || err != nil {
		t.Errorf("moved: %t, %v", is, err)
	}
	if got, _ := files.Read(daemonJSON); string(got) != owners {
		t.Errorf("got %q", got)
	}
}

func TestADamagedRestartIsStillOne(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, content := range []string{"", "{{", `{"containers": ["--rm"]}`} {
		damage(t, files, pendingRecord.Path, content)
		if p := readPending(files); !Interrupted(files) || len(p.Containers) > 0 {
			t.Errorf("%q: %t %v", content, Interrupted(files), p)
		}
	}
}

func TestDefaultAddress(t *testing.T) {
	taken := []links.Route{
		{Dst: netip.MustParsePrefix("172.17.0.0/16"), Link: "br-1"},
		{Dst: netip.MustParsePrefix("0.0.0.0/0"), Link: "eth0"},
		{Dst: netip.MustParsePrefix("172.18.0.0/16"), Link: "docker0"},
	}
	pools, err := decode([]byte(`{"default-address-pools": [{"base": "10.20.0.0/16", "size": 24}]}`))
	must.NoError(t, err)
	if got := defaultAddress(settings{}, taken).String(); got != "172.18.0.1/16" {
		t.Errorf("got %s", got)
	}
	if got := defaultAddress(pools, taken).String(); got != "10.20.0.1/24" {
		t.Errorf("got %s from the owner's pool", got)
	}
}
