package machines

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh/sshtest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// scripted is a machine whose answers are written down.
type scripted struct {
	facts     string // lines of facts.sh
	preflight string // answer of `kube-bootstrap preflight`; "": no problem
	dryRun    string // answer of `kube-bootstrap ROLE --dry-run`; "": nothing to do
	isolated  bool   // it reaches no other machine

	mu       sync.Mutex
	commands []string
	received string // the last file
}

// kinds maps a text that only one command of this package contains to the name of the command.
var kinds = []struct{ name, word string }{
	{"lock and facts", "flock -n"}, {"facts", "say arch"}, {"fetch", "--pinnedpubkey"}, {"serve", "'serve-program'"},
	{"put", "sha256sum"}, {"stat", ".part-"},
	{"preflight", "'preflight'"}, {"dry run", "'--dry-run'"}, {"rm", "'rm' '-rf'"}, {"master", "'master'"},
	{"worker", "'worker'"},
}

func (s *scripted) answer(_ context.Context, command string, channel cryptossh.Channel) uint32 {
	at := slices.IndexFunc(kinds, func(k struct{ name, word string }) bool { return strings.Contains(command, k.word) })
	if at < 0 {
		fmt.Fprintln(channel.Stderr(), "unknown command", command)
		return 1
	}
	kind := kinds[at].name
	s.mu.Lock()
	s.commands = append(s.commands, kind+" "+role(command))
	s.mu.Unlock()
	switch kind {
	case "lock and facts", "facts":
		fmt.Fprint(channel, s.facts+"end\n")
	case "stat":
		fmt.Fprintln(channel, 0)
	case "serve":
		fmt.Fprintln(channel, "1234 sha256//key")
	case "fetch":
		if s.isolated {
			return 1
		}
	case "preflight":
		fmt.Fprintf(channel, `{"items": [%s]}`, s.preflight)
	case "dry run":
		fmt.Fprintf(channel, `{"items": [%s]}`, s.dryRun)
	}
	in, err := io.ReadAll(channel) // the lock lasts until the client ends it
	if kind == "put" && err == nil {
		_, s.received, _ = strings.Cut(string(in), "\n\n")
	}
	return 0
}

// role returns the host command in a command.
func role(command string) string {
	switch {
	case strings.Contains(command, "'--join'"):
		return "master --join"
	case strings.Contains(command, "'master'"):
		return "master"
	case strings.Contains(command, "'worker'"):
		return "worker"
	}
	return ""
}

func (s *scripted) got() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(strings.ReplaceAll(strings.Join(s.commands, ", "), " ,", ","))
}

// gotFrom is got as if this machine had sent each file: any machine may be the first.
func (s *scripted) gotFrom() string {
	return strings.NewReplacer("fetch", "stat, put", ", serve", "").Replace(s.got())
}

// factsOf returns the facts of a machine that is part of no cluster.
func factsOf(number int, arch string, more ...string) string {
	address := fmt.Sprintf("10.1.%d.%d", number/250, number%250+1)
	return fmt.Sprintf("arch %s\nkernel Linux\nhostname n%d\nid id-%d\nclock %d\nconnection 10.0.0.1 5 %s 22\n"+
		"addresses %s\ndocker yes\nfree %d\n%s\n",
		arch, number, number, time.Now().Unix(), address, address, 100<<20, strings.Join(more, "\n"))
}

// lab returns the options of a cluster of machines: the first one is its control plane.
func lab(t *testing.T, all ...*scripted) Options {
	t.Helper()
	key := login(t)
	choice := Choice{Cluster: "lab"}
	for i, s := range all {
		host, text, err := net.SplitHostPort(sshtest.StartScripted(t, sshtest.Limits{}, s.answer, key).Addr)
		must.NoError(t, err)
		port, err := strconv.Atoi(text)
		must.NoError(t, err)
		m := Machine{
			Spec: topology.Spec{Name: fmt.Sprint("n", i), Role: topology.Worker, Address: host},
			SSH:  connection.SSH{User: "root", Port: port, AcceptNewHostKeys: true},
		}
		if i == 0 || strings.Contains(s.facts, "role master") {
			m.Spec.Role = topology.ControlPlane
		}
		choice.Machines = append(choice.Machines, m)
	}
	dir := t.TempDir()
	for _, arch := range []string{"amd64", "arm64"} {
		must.Write(t, filepath.Join(dir, "program-"+arch), "for "+arch)
	}
	return Options{
		Selection: session.Selection{Name: "lab", Provider: choice, CacheDir: dir},
		Program: func(_ context.Context, _, arch string) (string, error) {
			return filepath.Join(dir, "program-"+arch), nil
		},
	}
}

// changing calls do with the run of these options.
func changing(t *testing.T, o Options, do func(*run)) {
	t.Helper()
	s, err := session.Open(o.Selection, nil)
	must.NoError(t, err)
	defer s.Close()
	r, release, err := begin(t.Context(), o, s)
	must.NoError(t, err)
	defer release()
	do(r)
}

func installed(t *testing.T, o Options, number int, role string, more ...string) string {
	t.Helper()
	path, err := o.Program(t.Context(), "", "amd64")
	must.NoError(t, err)
	digest, err := remote.Sum(path)
	must.NoError(t, err)
	return factsOf(number, "x86_64", append(more, "role "+role, "complete yes", "digest:"+programFile+" "+digest)...)
}

// TestAHundredMachines: what they need of this machine. All servers are in this process too.
func TestAHundredMachines(t *testing.T) {
	var all []*scripted
	for i := range 100 {
		all = append(all, &scripted{facts: factsOf(i, "x86_64")})
	}
	o := lab(t, all...)
	before, started := runtime.NumGoroutine(), time.Now()
	plans, err := Plan(t.Context(), o)
	must.NoError(t, err)
	if len(plans) != 100 || strings.Join(plans[99].Changes, ", ") != "put "+programDir+"/"+programFile+", run worker" {
		t.Errorf("%d plans, the last one is %+v", len(plans), plans[len(plans)-1])
	}
	changing(t, o, func(r *run) {
		if ready, err := r.prepare(t.Context(), r.chosen()); err != nil || len(ready) != 100 {
			t.Errorf("%d are ready, %v", len(ready), err)
		}
	})
	for i := range 10 {
		all[i*10].facts = strings.Replace(all[i*10].facts, "docker yes\n", "", 1)
	}
	_, err = Plan(t.Context(), o)
	if found := step.Problems(err); len(found) != 10 {
		t.Errorf("%d problems: %v", len(found), err)
	}
	t.Logf("three runs took %s", time.Since(started))
	must.Until(t, "no goroutine is left", func() bool { return runtime.NumGoroutine() <= before })
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	if memory.Sys > 300<<20 {
		t.Errorf("the process has %d MiB", memory.Sys>>20)
	}
}

func TestAMachineGetsTheProgramOfItsArchitecture(t *testing.T) {
	board := &scripted{facts: factsOf(0, "aarch64")}
	o := lab(t, board)
	program := o.Program
	var mu sync.Mutex
	asked := map[string]bool{}
	o.Program = func(ctx context.Context, bundle, arch string) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		asked[arch] = true
		return program(ctx, bundle, arch)
	}
	changing(t, o, func(r *run) {
		_, err := r.prepare(t.Context(), r.chosen())
		must.NoError(t, err)
	})
	if got := plain(t, board.received); got != "for arm64" || len(asked) != 1 {
		t.Errorf("it got %q, programs of %v were looked for", got, asked)
	}
}

// plain returns the content of a file that was sent compressed.
func plain(t *testing.T, sent string) string {
	t.Helper()
	reader, err := gzip.NewReader(strings.NewReader(sent))
	must.NoError(t, err)
	content, err := io.ReadAll(reader)
	must.NoError(t, err)
	return string(content)
}

// TestTheProgramLeavesThisMachineOnce: the others fetch it from the first machine that has it.
func TestTheProgramLeavesThisMachineOnce(t *testing.T) {
	var all []*scripted
	for i := range 4 {
		all = append(all, &scripted{facts: factsOf(i, "x86_64")})
	}
	all[3].isolated = true
	changing(t, lab(t, all...), func(r *run) {
		ready, err := r.prepare(t.Context(), r.chosen()[:1])
		must.NoError(t, err)
		more, err := r.prepare(t.Context(), r.chosen()[1:])
		must.NoError(t, err)
		if len(ready)+len(more) != 4 {
			t.Errorf("%d are ready", len(ready)+len(more))
		}
	})
	const begins = "lock and facts, "
	for i, want := range []string{
		"stat, put, preflight master, serve", "fetch, preflight worker", "fetch, preflight worker",
		"fetch, stat, put, preflight worker",
	} {
		if got := all[i].got(); got != begins+want {
			t.Errorf("n%d got %q, want %q", i, got, begins+want)
		}
	}
}

func TestAProblemOfPreflightLeavesNothingOnNewMachines(t *testing.T) {
	first, second := &scripted{facts: factsOf(0, "x86_64")}, &scripted{facts: factsOf(1, "x86_64")}
	second.preflight = `{"problems": [{"name": "swap", "text": "swap is on"}, {"name": "join-settings", "text": "-"}]}`
	changing(t, lab(t, first, second), func(r *run) {
		found := step.Problems(r.up(t.Context()))
		if len(found) != 1 || found[0].Name != "swap" || found[0].Text != "machine n1: swap is on" {
			t.Errorf("%v", found)
		}
	})
	const begins = "lock and facts, stat, put, preflight "
	if first.gotFrom() != begins+"master, rm" || second.gotFrom() != begins+"worker, rm" {
		t.Errorf("the first got %q, the second %q", first.gotFrom(), second.gotFrom())
	}
}

// TestARunThatChangesNothing: at most three round trips, without the kubeconfig, and no role runs.
func TestARunThatChangesNothing(t *testing.T) {
	all := []*scripted{{facts: "role master"}, {facts: "role master"}, {}}
	o := lab(t, all...)
	for i, role := range []string{"master", "master", "worker"} {
		all[i].facts = installed(t, o, i, role)
	}
	changing(t, o, func(r *run) { must.NoError(t, r.up(t.Context())) })
	for i, want := range []string{"master", "master", "worker"} {
		if got := all[i].got(); got != "lock and facts, dry run "+want {
			t.Errorf("n%d got %q", i, got)
		}
	}
}

// TestAClusterThatWasMadeByHandIsAdopted: only the host with a difference runs its role, without a token.
func TestAClusterThatWasMadeByHandIsAdopted(t *testing.T) {
	all := []*scripted{
		{facts: factsOf(0, "x86_64", "role master", "complete yes")},
		{facts: factsOf(1, "x86_64", "role master", "complete yes"), dryRun: `{"step": "write a file"}`},
		{facts: factsOf(2, "x86_64", "role worker", "complete yes")},
	}
	changing(t, lab(t, all...), func(r *run) {
		must.NoError(t, r.up(t.Context()))
		must.NoError(t, r.failed.err())
	})
	const begins = "lock and facts, stat, put, dry run "
	for i, want := range []string{"master", "master, master master", "worker"} {
		if got := all[i].gotFrom(); got != begins+want {
			t.Errorf("n%d got %q", i, got)
		}
	}
}

func TestOneMachineOfAFile(t *testing.T) {
	off, on := &scripted{facts: factsOf(0, "x86_64")}, &scripted{facts: factsOf(1, "x86_64")}
	o := lab(t, off, on)
	f, err := Inspect(t.Context(), o.Selection, "n1")
	if err != nil || f.HostName != "n1" || f.Architecture != "amd64" || f.Complete || off.got() != "" {
		t.Errorf("%+v, %v; the other machine got %q", f, err, off.got())
	}
	if _, err := Inspect(t.Context(), o.Selection, "n2"); len(step.Problems(err)) != 1 {
		t.Errorf("an unknown machine: %v", err)
	}
}

func TestANodeThatIsNotInTheFileHasANextStep(t *testing.T) {
	nodes := []apiserver.NodeStatus{{Name: "a"}, {Name: "b"}}
	left := absent(nodes, []Machine{{Spec: topology.Spec{Name: "a"}}})
	if len(left) != 1 || left[0].Name != "b" {
		t.Errorf("absent %v", left)
	}
	for pruned, want := range map[bool]string{false: "remove it with --prune", true: "turndown` on its machine"} {
		if got := (Result{Absent: []string{"b"}}).Hints(pruned); len(got) != 1 || !strings.HasSuffix(got[0], want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestAMachineWhoseNodeWasRemovedIsNamed(t *testing.T) {
	all := []*scripted{{facts: "role master"}, {}, {facts: factsOf(2, "x86_64")}}
	o := lab(t, all...)
	all[0].facts, all[1].facts = installed(t, o, 0, "master"), installed(t, o, 1, "worker")
	changing(t, o, func(r *run) {
		found := step.Problems(errors.Join(r.request.removedNodes([]apiserver.NodeStatus{{Name: "n0"}})...))
		if len(found) != 1 || found[0].Name != "node-removed" || !strings.HasPrefix(found[0].Text, "machine n1: ") {
			t.Errorf("%v", found)
		}
	})
}

// TestAMachineThatIsOffStopsNoOther: the first control plane is set up, and the others can join it.
func TestAMachineThatIsOffStopsNoOther(t *testing.T) {
	first := &scripted{facts: factsOf(0, "x86_64")}
	changing(t, lab(t, first), func(r *run) {
		r.failed.add(errors.New("machine e is off"))
		must.NoError(t, r.setUpFirst(t.Context(), r.chosen()))
	})
	if got := first.got(); got != "lock and facts, master master" {
		t.Errorf("it got %q", got)
	}
}
