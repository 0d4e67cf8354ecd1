package maindocker

import (
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
	}
	for line, want := range cases {
		problems := step.Problems(UnitFlagProblems(strings.Fields(line)))
		switch {
		case want == "" && len(problems) != 0:
			t.Errorf("%s: got %v", line, problems[0])
		case want != "" && (len(problems) != 1 || problems[0].Name != "docker-flags" || !strings.Contains(problems[0].Text, want)):
			t.Errorf("%s: got %v, want %q", line, problems, want)
		}
	}
}

func TestSettingsProblems(t *testing.T) {
	for text, want := range map[string]int{`{"bridge": "none"}`: 1, `{"iptables": false, "bridge": "br1"}`: 2, `{"iptables": true, "bridge": ""}`: 0, `{}`: 0} {
		s, err := decode([]byte(text))
		must.NoError(t, err)
		if got := step.Problems(settingsProblems(s)); len(got) != want {
			t.Errorf("%s: got %v", text, got)
		}
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
	d := Daemon{Units: initsystem.Open(), Engine: func() *docker.Engine { return docker.Open(t.TempDir() + "/none.sock") }}
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
	for init, golden := range map[string]string{"systemd": "network.service", "sysv": "network.sysv", "openrc": "network.openrc"} {
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
