package maindocker

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestUnitFlagProblems(t *testing.T) {
	cases := map[string]string{
		"dockerd -H fd:// --containerd=/run/containerd/containerd.sock": "",
		"dockerd --bip=172.30.0.1/16":                                   "--bip 172.30.0.1/16",
		"dockerd --mtu 9000 --debug":                                    "--mtu 9000",
		"dockerd -b none":                                               "--b none",
		"dockerd --iptables=false":                                      "--iptables false",
		"dockerd --iptables=true":                                       "",
		"dockerd --ip-masq=false":                                       "--ip-masq false",
		"dockerd --config-file=/etc/docker/daemon.json":                 "",
		"dockerd --config-file /srv/d.json":                             "--config-file /srv/d.json",
		"dockerd --firewall-backend=nftables":                           "--firewall-backend nftables",
		"dockerd --firewall-backend iptables":                           "",
		"dockerd --live-restore":                                        "",
		"dockerd --live-restore=false":                                  "--live-restore false",
		"dockerd --default-gateway 172.17.0.9":                          "--default-gateway 172.17.0.9",
	}
	for line, want := range cases {
		problems := step.Problems(UnitFlagProblems(strings.Fields(line)))
		switch {
		case want == "" && len(problems) != 0:
			t.Errorf("%s: got %v", line, problems[0])
		case want != "" && (len(problems) != 1 || problems[0].Name != "docker-flags" ||
			!strings.Contains(problems[0].Text, want)):
			t.Errorf("%s: got %v, want %q", line, problems, want)
		}
	}
}

func TestSettingsProblems(t *testing.T) {
	for text, want := range map[string]int{
		`{"bridge": "none"}`: 1, `{"iptables": false, "bridge": "br1"}`: 2, `{"iptables": true, "bridge": ""}`: 0,
		`{}`: 0,
		`{"default-gateway": "172.17.0.9", "containerd-namespace": "k8s.io"}`: 2,
		`{"containerd-namespace": "moby", "rootless": false}`:                 0,
		`{"hosts": ["tcp://127.0.0.1:2375"]}`:                                 1,
		`{"hosts": ["tcp://127.0.0.1:2375", "unix:///var/run/docker.sock"]}`:  0, `{"hosts": []}`: 0,
	} {
		s, err := decode([]byte(text))
		must.NoError(t, err)
		if got := step.Problems(settingsProblems(s)); len(got) != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestOverlaps(t *testing.T) {
	of := ClusterNetworks{
		"flannelNetwork": netip.MustParsePrefix("10.1.0.0/16"),
		"serviceNetwork": netip.MustParsePrefix("172.30.0.0/16"), "none": {},
	}
	overlapped := map[string]string{
		"10.1.2.0/24": "flannelNetwork: 10.1.0.0/16", "10.0.0.0/8": "flannelNetwork: 10.1.0.0/16",
		"172.24.0.0/13": "serviceNetwork: 172.30.0.0/16", "10.2.0.0/16": "",
	}
	for other, want := range overlapped {
		if got := strings.Join(of.overlapping(netip.MustParsePrefix(other)), " "); got != want {
			t.Errorf("%s: %q, want %q", other, got, want)
		}
	}
}

// TestHanging: systemd accepts the connections of a dockerd that hangs at its start.
func TestHanging(t *testing.T) {
	d := Daemon{Files: host.Files{Root: t.TempDir()}, Units: initOnly{name: "systemd"}}
	socket := d.Files.Path("/d.sock")
	silent, err := net.Listen("unix", socket) // nobody accepts
	must.NoError(t, err)
	defer silent.Close()
	d.Engine = func() *docker.Engine { return docker.Open(socket) }
	must.NoError(t, d.Files.Write("/run/docker.pid", []byte("7\n"), 0o644))
	for program, want := range map[string]int{"/usr/sbin/dockerd": 1, "/bin/other": 0} {
		must.NoError(t, d.Files.Write("/proc/7/cmdline", []byte(program+"\x00-H\x00fd://\x00"), 0o644))
		asking, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		problems := step.Problems(d.Hanging(step.WithLimit(asking, time.Second)))
		if len(problems) != want || want == 1 && problems[0].Name != "docker-hangs" {
			t.Errorf("%s: got %v", program, problems)
		}
	}
}

// TestAnAnswerAtTheLimitIsAnAnswer: there is no error then.
func TestAnAnswerAtTheLimitIsAnAnswer(t *testing.T) {
	asking, cancel := context.WithCancel(t.Context())
	cancel()
	if unanswered(t.Context(), asking, nil) || !unanswered(t.Context(), asking, asking.Err()) ||
		unanswered(asking, asking, asking.Err()) {
		t.Error("an answer at the limit is taken for none")
	}
}

func TestTooOld(t *testing.T) {
	for api, want := range map[string]bool{"1.41": true, "1.43": true, "1.44": false, "1.52": false, "": false} {
		if got := tooOld(api); got != want {
			t.Errorf("API %q: got %v", api, got)
		}
	}
}

func TestDockerThatIsNotThere(t *testing.T) {
	d := Daemon{
		Units: initsystem.Open(), Engine: func() *docker.Engine { return docker.Open(t.TempDir() + "/none.sock") },
	}
	problems := step.Problems(d.problem(t.Context()))
	if len(problems) != 1 || problems[0].Name != "docker-stopped" && problems[0].Name != "docker-missing" {
		t.Errorf("got %v", problems)
	}
}

// initOnly is a host of that init system.
type initOnly struct {
	initsystem.Units
	name string
}

func (i initOnly) Init() string { return i.name }

// The golden files are the units as a host gets them.
func TestBootFile(t *testing.T) {
	for init, golden := range map[string]string{
		"systemd": "network.service", "sysv": "network.sysv", "openrc": "network.openrc",
	} {
		got := bootFile(initOnly{name: init}, "/var/lib/kube-bootstrap/bin/kube-bootstrap", 5*time.Minute)
		hosttest.Golden(t, golden, got.Data)
	}
}

func TestAnInterruptedInstallOfTheBootUnitLeavesNothing(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	const dir = "/etc/systemd/system/"
	must.Write(t, files.Path(dir+".kube-bootstrap-network.service-123"), "")
	must.NoError(t, removeBootUnit(t.Context(), files, nil, dir+"network.service"))
	if names, err := files.Entries(dir); err != nil || len(names) > 0 {
		t.Errorf("left %q, %v", names, err)
	}
}
