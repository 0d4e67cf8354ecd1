//go:build e2e && long

package e2e

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestReadme types the commands for two hosts of the README and of the quick start on bare hosts.
// Only the first one reaches the internet.
func TestReadme(t *testing.T) {
	made := hosts(t, "docker-28.5", "10.131.1.0/24", "e2e-readme-a", "e2e-readme-b")
	a, b := made[0], made[1]
	withoutInternet(t, a)
	o := newOfficial(t)
	s := startInternet(t, o, "10.131.1.1")
	s.trust(t, a)
	s.lead(t, a)
	owned(t, a)
	owned(t, b)
	before := [2]string{a.world(t), b.world(t)}
	announced(t, a)
	a.sameWorld(t, "preflight and a dry run", before[0])
	big := killedPull(t, a, s, o)
	readmeBlocks(t, a, b)
	if got := s.requests(big); len(got) != 1 || !strings.Contains(got[0], "bytes=") {
		t.Errorf("the blob of the killed pull was asked for by %q", got)
	}
	for _, m := range made {
		forPods(t, m)
	}
	packets(t, a, made...)
	t.Run("reboot", func(t *testing.T) {
		spread(t, a)
		comesBack(t, a, b, subnets(t, a, b), func(t *testing.T) { restart(t, a, b) })
		packetsAgain(t, a, made...)
	})
	for _, m := range made {
		m.sh(t, settled)
	}
	backToBare(t, before, a, b)
	s.lead(t, a)
	quickStart(t, a, b)
	for i, m := range made {
		m.sameWorld(t, "what the quick start says", before[i])
	}
}

// withoutInternet expects that both commands are refused for the missing images, before anything
// is changed.
func withoutInternet(t *testing.T, m machine) {
	t.Helper()
	before := m.world(t)
	for command, only := range map[string]string{"preflight": "preflight found problems: images", "master": "[images]"} {
		code, says := m.ask(t, "", command, "")
		if code != "3" || !strings.Contains(says, only) || strings.Count(says, "PROBLEM")+len(problemNames(says)) != 1 {
			t.Errorf("%s without the internet: exit code %s:\n%s", command, code, says)
		}
		for _, way := range []string{"offline pull", "offline build", "--registry"} {
			if !strings.Contains(says, way) {
				t.Errorf("%s does not name %s:\n%s", command, way, says)
			}
		}
	}
	m.sameWorld(t, "a refused master", before)
}

// announced expects preflight and a dry run to say what master would pull.
func announced(t *testing.T, m machine) {
	t.Helper()
	for command, want := range map[string]string{
		"preflight":        "MB, are pulled from ",
		"master --dry-run": "fetch registry.k8s.io/coredns/coredns:",
	} {
		if says := m.sh(t, "kube-bootstrap "+command); !strings.Contains(says, want) {
			t.Errorf("%s does not say what is pulled:\n%s", command, says)
		}
	}
}

// killedPull kills master in the middle of a large blob, and returns the path of the blob on the
// sites.
func killedPull(t *testing.T, m machine, s *sites, o *official) string {
	t.Helper()
	blob := o.largest(t, "build-image/debian-base:bookworm-v1.0.6")
	big := "/v2/build-image/debian-base/blobs/" + blob
	s.hold(big)
	ended := make(chan error, 1)
	go func() {
		_, err := m.try(t.Context(), "kube-bootstrap master")
		ended <- err
	}()
	select {
	case <-s.holding:
	case err := <-ended:
		t.Fatalf("master ended before it asked for %s: %v", big, err)
	}
	soon(t, time.Minute, "some of the blob on the host", m,
		"[ -s /var/lib/kube-bootstrap/pull/downloads/partial/"+strings.TrimPrefix(blob, "sha256:")+" ]")
	m.sh(t, "pkill -9 -x kube-bootstrap")
	if err := <-ended; err == nil {
		t.Error("a killed master succeeded")
	}
	s.goOn()
	return big
}

// readmeBlocks types the blocks of the README, each on the host that it is for.
func readmeBlocks(t *testing.T, a, b machine) {
	t.Helper()
	_, twoHosts := readPage(t, "../README.md").split(t, "## Two hosts")
	blocks := twoHosts.commands()
	b.joins(t, blocks[1], a.typed(t, blocks[0]))
	bothReady(t, a.kubectl(t, "get nodes"), a, b)
	for _, m := range []machine{a, b} {
		m.sh(t, "kube-bootstrap status")
	}
}

// quickStart types the page about two hosts, each block on the host that the page names.
func quickStart(t *testing.T, a, b machine) {
	t.Helper()
	blocks := readPage(t, "quickstart.md").commands()
	if len(blocks) != 7 || !strings.Contains(blocks[6], "turndown") {
		t.Fatalf("the page has other commands: %q", blocks)
	}
	a.typed(t, blocks[0])
	b.joins(t, blocks[2], a.typed(t, blocks[1]))
	bothReady(t, a.typed(t, blocks[3]), a, b)
	a.typed(t, blocks[4])
	a.kubectl(t, "--kubeconfig anna.conf get pods")
	a.sh(t, "! kubectl --kubeconfig anna.conf get nodes && rm anna.conf")
	a.typed(t, blocks[5])
	b.typed(t, blocks[6])
	a.typed(t, blocks[6])
}

// example are the values in a command to join that a page shows only as an example.
var example = regexp.MustCompile(`(TOKEN=|sha256:|--master-ip )\S+`)

// joins types the command that token create printed, which a page shows.
func (m machine) joins(t *testing.T, shown, printed string) {
	t.Helper()
	command := workerCommand(t, printed) + "\n"
	if got, want := example.ReplaceAllString(command, "$1"), example.ReplaceAllString(shown, "$1"); got != want {
		t.Errorf("the page shows %q, token create prints %q", want, got)
	}
	m.typed(t, command)
}

// typed runs a block of commands as they stand on a page, on a terminal, and returns what the
// terminal shows. Each question is answered with yes.
func (m machine) typed(t *testing.T, block string) string {
	t.Helper()
	m.sh(t, "cat >/tmp/typed <<'END'\nset -e\n"+block+"END")
	defer m.sh(t, "rm /tmp/typed")
	return m.sh(t, "yes yes | head -n 20 | script -qec 'sh /tmp/typed' /dev/null")
}

// bothReady expects the nodes of the machines in a list of kubectl to be Ready.
func bothReady(t *testing.T, list string, made ...machine) {
	t.Helper()
	for _, m := range made {
		if !slices.ContainsFunc(strings.Split(list, "\n"), func(line string) bool {
			fields := strings.Fields(line)
			return len(fields) > 1 && fields[0] == m.name && fields[1] == "Ready"
		}) {
			t.Errorf("%s is not Ready:\n%s", m.name, list)
		}
	}
}
