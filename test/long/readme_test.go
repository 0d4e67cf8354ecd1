//go:build e2e

package long

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
	"github.com/kube-bootstrap/kube-bootstrap/test/registries"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// TestReadme types the commands for two hosts of the README and of the quick start on bare hosts.
// Only the first one reaches the internet.
func TestReadme(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.131.1.0/24", "e2e-readme-a", "e2e-readme-b")
	a, b := made[0], made[1]
	withoutInternet(t, a)
	o := registries.NewOfficial(t)
	s := registries.StartInternet(t, o, "10.131.1.1")
	s.Trust(t, a)
	s.Lead(t, a)
	hosts.Owned(t, a)
	hosts.Owned(t, b)
	before := [2]string{a.World(t), b.World(t)}
	announced(t, a)
	a.SameWorld(t, "preflight and a dry run", before[0])
	big := killedPull(t, a, s, o)
	readmeBlocks(t, a, b)
	if got := s.Requests(big); len(got) != 1 || !strings.Contains(got[0], "bytes=") {
		t.Errorf("the blob of the killed pull was asked for by %q", got)
	}
	for _, m := range made {
		hosts.ForPods(t, m)
	}
	traffic.Packets(t, a, made...)
	t.Run("reboot", func(t *testing.T) {
		clusters.Spread(t, a)
		clusters.ComesBack(t, a, b, clusters.Subnets(t, a, b), func(t *testing.T) { hosts.Restart(t, a, b) })
		traffic.PacketsAgain(t, a, made...)
	})
	for _, m := range made {
		m.Sh(t, clusters.Settled)
	}
	clusters.BackToBare(t, before, a, b)
	s.Lead(t, a)
	quickStart(t, a, b)
	for i, m := range made {
		m.SameWorld(t, "what the quick start says", before[i])
	}
}

// withoutInternet expects that both commands are refused for the missing images, before anything
// is changed.
func withoutInternet(t *testing.T, m hosts.Machine) {
	t.Helper()
	before := m.World(t)
	for command, only := range map[string]string{
		"preflight": "preflight found problems: images", "master": "[images]",
	} {
		code, says := m.Ask(t, "", command, "")
		if code != "3" || !strings.Contains(says, only) ||
			strings.Count(says, "PROBLEM")+len(hosts.ProblemNames(says)) != 1 {
			t.Errorf("%s without the internet: exit code %s:\n%s", command, code, says)
		}
		for _, way := range []string{"offline pull", "offline build", "--registry"} {
			if !strings.Contains(says, way) {
				t.Errorf("%s does not name %s:\n%s", command, way, says)
			}
		}
	}
	m.SameWorld(t, "a refused master", before)
}

// announced expects preflight and a dry run to say what master would pull.
func announced(t *testing.T, m hosts.Machine) {
	t.Helper()
	for command, want := range map[string]string{
		"preflight":        "MB, are pulled from ",
		"master --dry-run": "fetch registry.k8s.io/coredns/coredns:",
	} {
		if says := m.Sh(t, "kube-bootstrap "+command); !strings.Contains(says, want) {
			t.Errorf("%s does not say what is pulled:\n%s", command, says)
		}
	}
}

// killedPull kills master in the middle of a large blob, and returns the path of the blob on the
// sites.
func killedPull(t *testing.T, m hosts.Machine, s *registries.Sites, o *registries.Official) string {
	t.Helper()
	blob := o.Largest(t, "build-image/debian-base:bookworm-v1.0.6")
	big := "/v2/build-image/debian-base/blobs/" + blob
	s.Hold(big)
	ended := make(chan error, 1)
	go func() {
		_, err := m.Try(t.Context(), "kube-bootstrap master")
		ended <- err
	}()
	select {
	case <-s.Holding:
	case err := <-ended:
		t.Fatalf("master ended before it asked for %s: %v", big, err)
	}
	hosts.Soon(t, time.Minute, "some of the blob on the host", m,
		"[ -s /var/lib/kube-bootstrap/pull/downloads/partial/"+strings.TrimPrefix(blob, "sha256:")+" ]")
	m.Sh(t, "pkill -9 -x kube-bootstrap")
	if err := <-ended; err == nil {
		t.Error("a killed master succeeded")
	}
	s.GoOn()
	return big
}

// readmeBlocks types the blocks of the README, each on the host that it is for.
func readmeBlocks(t *testing.T, a, b hosts.Machine) {
	t.Helper()
	_, twoHosts := pages.Read(t, "../README.md").Split(t, "## Two hosts")
	blocks := twoHosts.Commands()
	joins(t, b, blocks[1], typed(t, a, blocks[0]))
	bothReady(t, a.Kubectl(t, "get nodes"), a, b)
	for _, m := range []hosts.Machine{a, b} {
		m.Sh(t, "kube-bootstrap status")
	}
}

// quickStart types the page about two hosts, each block on the host that the page names.
func quickStart(t *testing.T, a, b hosts.Machine) {
	t.Helper()
	blocks := pages.Read(t, "quickstart.md").Commands()
	if len(blocks) != 7 || !strings.Contains(blocks[6], "turndown") {
		t.Fatalf("the page has other commands: %q", blocks)
	}
	typed(t, a, blocks[0])
	joins(t, b, blocks[2], typed(t, a, blocks[1]))
	bothReady(t, typed(t, a, blocks[3]), a, b)
	typed(t, a, blocks[4])
	a.Kubectl(t, "--kubeconfig anna.conf get pods")
	a.Sh(t, "! kubectl --kubeconfig anna.conf get nodes && rm anna.conf")
	typed(t, a, blocks[5])
	typed(t, b, blocks[6])
	typed(t, a, blocks[6])
}

// example are the values in a command to join that a page shows only as an example.
var example = regexp.MustCompile(`(TOKEN=|sha256:|--master-ip )\S+`)

// joins types the command that token create printed, which a page shows.
func joins(t *testing.T, m hosts.Machine, shown, printed string) {
	t.Helper()
	command := clusters.WorkerCommand(t, printed) + "\n"
	if got, want := example.ReplaceAllString(command, "$1"), example.ReplaceAllString(shown, "$1"); got != want {
		t.Errorf("the page shows %q, token create prints %q", want, got)
	}
	typed(t, m, command)
}

// typed runs a block of commands as they stand on a page, on a terminal, and returns what the
// terminal shows. Each question is answered with yes.
func typed(t *testing.T, m hosts.Machine, block string) string {
	t.Helper()
	m.Sh(t, "cat >/tmp/typed <<'END'\nset -e\n"+block+"END")
	defer m.Sh(t, "rm /tmp/typed")
	return m.Sh(t, "yes yes | head -n 20 | script -qec 'sh /tmp/typed' /dev/null")
}

// bothReady expects the nodes of the machines in a list of kubectl to be Ready.
func bothReady(t *testing.T, list string, made ...hosts.Machine) {
	t.Helper()
	for _, m := range made {
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) > 1 && fields[0] == m.Name && fields[1] == "Ready"
		}) {
			t.Errorf("%s is not Ready:\n%s", m.Name, list)
		}
	}
}
