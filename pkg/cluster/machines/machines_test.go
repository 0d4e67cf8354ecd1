package machines

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"
	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access/accesstest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/machines/transfer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh/sshtest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// board returns a provider with one machine: an SSH server that runs commands on this machine.
func board(t *testing.T, s *sshtest.Server) *Provider {
	t.Helper()
	address, text, err := net.SplitHostPort(s.Addr)
	must.NoError(t, err)
	port, err := strconv.Atoi(text)
	must.NoError(t, err)
	p, err := Choice{Cluster: "lab", Machines: []Machine{{
		Spec: topology.Spec{Name: "board", Role: topology.ControlPlane, Address: address},
		SSH:  connection.SSH{User: "root", Port: port, AcceptNewHostKeys: true},
	}}}.Open()
	must.NoError(t, err)
	t.Cleanup(func() { must.NoError(t, p.Close()) })
	return p.(*Provider)
}

func login(t *testing.T) cryptossh.PublicKey {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SSH_AUTH_SOCK", "")
	key, _ := sshtest.Key(t, home, "id_ed25519", "")
	return key
}

func TestAMachineIsANode(t *testing.T) {
	p := board(t, sshtest.Start(t, sshtest.Limits{}, login(t)))
	accesstest.Node(t, "board", p.Node("board"), p.Node("none"))
	must.NoError(t, os.RemoveAll("/var/access-test"))
}

// TestALockNamesItsHolder: the end of the connection frees the lock.
func TestALockNamesItsHolder(t *testing.T) {
	key := login(t)
	first, second := sshtest.Start(t, sshtest.Limits{}, key), sshtest.Start(t, sshtest.Limits{}, key)
	p, other := board(t, first), board(t, second)
	release, err := p.lockAll(t.Context())
	must.NoError(t, err)
	time.Sleep(time.Second) // the same process at the same second is the same run
	for range 5 {           // the lock outlives the first sign of life
		_, err = other.lockAll(t.Context())
		if !errors.Is(err, host.ErrLocked) || !strings.Contains(err.Error(), "machine board: ") ||
			!strings.Contains(err.Error(), "process "+strconv.Itoa(os.Getpid())) {
			t.Fatalf("got %v", err)
		}
	}
	first.Cut()
	must.Until(t, "the lock is free", func() bool {
		free, err := other.lockAll(t.Context())
		if err == nil {
			free()
		}
		return err == nil
	})
	release()
	if _, err := os.Stat(lockPath); err == nil {
		t.Errorf("%s is left", lockPath)
	}
}

func TestFactsOfAMachine(t *testing.T) {
	p := board(t, sshtest.Start(t, sshtest.Limits{}, login(t)))
	f := p.ask(t.Context(), "board")
	if f.Err != nil || f.Kernel != "Linux" || f.HostName == "" || f.Free == 0 || f.Clock.Abs() > time.Minute ||
		f.installed() {
		t.Errorf("%+v", f)
	}
}

func TestAFileThatWasBegunIsContinued(t *testing.T) {
	p := board(t, sshtest.Start(t, sshtest.Limits{}, login(t)))
	dir := t.TempDir()
	from := must.Write(t, filepath.Join(dir, "from"), "0123456789")
	u := transfer.File{From: from, To: filepath.Join(dir, "to"), Mode: 0o640}
	const digest = "84d89877f0d4041efb6bf91a16f0248f2fd573e6af05c19f96bedb9f882f7882"
	must.Write(t, u.To+".part-"+digest, "01234")
	must.Write(t, u.To+".part-other", "of another file")
	must.NoError(t, u.Send(t.Context(), p.Node("board")))
	if got := string(must.Read(t, u.To)); got != "0123456789" {
		t.Errorf("content %q", got)
	}
	must.Write(t, u.To+".part-"+digest, "wrong")
	if err := u.Send(t.Context(), p.Node("board")); err == nil || !strings.Contains(err.Error(), "digest") {
		t.Errorf("a part of another content: %v", err)
	}
	noPart(t, u)
}

func TestAFileIsSentCompressed(t *testing.T) {
	p := board(t, sshtest.Start(t, sshtest.Limits{}, login(t)))
	dir, content := t.TempDir(), strings.Repeat("0123456789", 1000)
	u := transfer.File{From: must.Write(t, filepath.Join(dir, "from"), content), To: filepath.Join(dir, "to"),
		Mode: 0o640, Compress: true}
	digest, err := remote.Sum(u.From)
	must.NoError(t, err)
	for what, begun := range map[string]func(sent []byte) []byte{
		"nothing":        func([]byte) []byte { return nil },
		"a part":         func(sent []byte) []byte { return sent[:len(sent)/2] },
		"all":            func(sent []byte) []byte { return sent },
		"more than that": func([]byte) []byte { return []byte(content) },
	} {
		sent := gzipped(t, content)
		must.Write(t, u.To+".part-"+digest+".gz", string(begun(sent)))
		must.NoError(t, u.Send(t.Context(), p.Node("board")))
		if got := string(must.Read(t, u.To)); got != content {
			t.Errorf("%s was there: %d bytes", what, len(got))
		}
	}
	must.Write(t, u.To+".part-"+digest+".gz", "wrong")
	if err := u.Send(t.Context(), p.Node("board")); err == nil || !strings.Contains(err.Error(), "is damaged") {
		t.Errorf("a part of another content: %v", err)
	}
	noPart(t, u)
}

func gzipped(t *testing.T, content string) []byte {
	t.Helper()
	var sent bytes.Buffer
	writer := gzip.NewWriter(&sent)
	_, err := writer.Write([]byte(content))
	must.NoError(t, errors.Join(err, writer.Close()))
	return sent.Bytes()
}

// noPart expects that no part of a file is left.
func noPart(t *testing.T, u transfer.File) {
	t.Helper()
	if left, err := filepath.Glob(u.To + ".part-*"); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

func TestAFileIsFetchedFromAnotherMachine(t *testing.T) {
	p := board(t, sshtest.Start(t, sshtest.Limits{}, login(t)))
	dir := t.TempDir()
	u := transfer.File{From: must.Write(t, filepath.Join(dir, "from"), "content"), To: filepath.Join(dir, "to"), Mode: 0o640}
	server := httptest.NewTLSServer(http.FileServer(http.Dir(dir)))
	t.Cleanup(server.Close)
	sum := sha256.Sum256(server.Certificate().RawSubjectPublicKeyInfo)
	from := transfer.Offer{URL: server.URL + "/from", Key: "sha256//" + base64.StdEncoding.EncodeToString(sum[:])}
	must.NoError(t, u.Fetch(t.Context(), p.Node("board"), from))
	if got := string(must.Read(t, u.To)); got != "content" {
		t.Errorf("content %q", got)
	}
	must.Write(t, filepath.Join(dir, "other"), "of another program")
	for what, bad := range map[string]transfer.Offer{
		"another key":     {URL: from.URL, Key: "sha256//" + base64.StdEncoding.EncodeToString(make([]byte, sha256.Size))},
		"another content": {URL: server.URL + "/other", Key: from.Key},
		"no file":         {URL: server.URL + "/none", Key: from.Key},
		"no server":       {URL: "https://127.0.0.1:1/", Key: from.Key},
	} {
		if err := u.Fetch(t.Context(), p.Node("board"), bad); err == nil {
			t.Errorf("%s was accepted", what)
		}
		noPart(t, u)
	}
}

// found is a machine that answers, and is part of no cluster.
func found(name string) Facts {
	return Facts{
		Arch: "amd64", Kernel: "Linux", HostName: name, MachineID: "id of " + name, Docker: true, Free: 100 << 30,
		Addr: netip.MustParseAddr(map[string]string{"a": "192.0.2.1", "b": "192.0.2.2", "c": "192.0.2.3"}[name]),
	}
}

func member(name, role, hash string) Facts {
	f := found(name)
	f.Role, f.CAHash = role, hash
	return f
}

// TestProblemsOfMachines: a is the first control plane, b the second one, c a worker.
func TestProblemsOfMachines(t *testing.T) {
	off := Facts{Err: &ssh.Unreachable{Problem: &step.Problem{Name: "ssh-refused"}}}
	refused := Facts{Err: &step.Problem{Name: "ssh-keys"}}
	changed := func(f Facts, change func(*Facts)) Facts { change(&f); return f }
	for what, c := range map[string]struct {
		a, b, c Facts
		known   string
		want    string
	}{
		"three new machines":               {found("a"), found("b"), found("c"), "", ""},
		"a worker is off":                  {found("a"), found("b"), off, "", ""},
		"a cluster whose first one is off": {off, member("b", "master", "x"), member("c", "worker", "x"), "", ""},
		"the first control plane is off":   {off, found("b"), found("c"), "", "control-plane-off"},
		"only a worker knows the cluster":  {off, found("b"), member("c", "worker", "x"), "", "control-plane-off"},
		"this machine knows the cluster":   {found("a"), off, found("c"), "x", "control-plane-off"},
		"only a worker is in a cluster": {
			found("a"), found("b"), member("c", "worker", "x"), "", "control-plane-missing",
		},
		"the first one accepts no key": {refused, found("b"), member("c", "worker", "x"), "", "ssh-keys"},
		"the cluster was removed":      {found("a"), found("b"), found("c"), "x", ""},
		"two clusters": {
			member("a", "master", "x"), member("b", "master", "y"), found("c"), "", "other-cluster",
		},
		"another role": {member("a", "master", "x"), found("b"), member("c", "master", "x"), "", "role"},
		"another name": {
			member("a", "master", "x"), changed(member("b", "master", "x"), func(f *Facts) { f.HostName = "z" }),
			found("c"), "", "node-name",
		},
		"another name than the recorded one": {
			member("a", "master", "x"),
			changed(member("b", "master", "x"), func(f *Facts) { f.Settings.HostName = "z" }), found("c"), "",
			"node-name",
		},
		"a recorded name that is not that of the system": {
			member("a", "master", "x"), changed(member("b", "master", "x"), func(f *Facts) {
				f.Settings.HostName, f.HostName = "b", "z"
			}), found("c"), "", "",
		},
		"one machine twice": {
			found("a"), changed(found("b"), func(f *Facts) { f.MachineID = "id of a" }), found("c"), "",
			"machine-id",
		},
		"several problems at once": {changed(found("a"), func(f *Facts) { f.Clock = time.Hour }),
			changed(found("b"), func(f *Facts) { f.Docker, f.Free = false, 1 }),
			changed(found("c"), func(f *Facts) { f.Arch = "arm64" }),
			"", "clock docker disk-space architecture"},
	} {
		r := request{facts: map[string]Facts{"a": c.a, "b": c.b, "c": c.c}, caHash: c.known, program: onlyAMD64}
		for name, role := range map[string]topology.Role{
			"a": topology.ControlPlane, "b": topology.ControlPlane, "c": topology.Worker,
		} {
			r.machines = append(r.machines, Machine{Spec: topology.Spec{Name: name, Role: role}})
		}
		slices.SortFunc(r.machines, func(a, b Machine) int { return strings.Compare(a.Spec.Name, b.Spec.Name) })
		var names []string
		for _, p := range step.Problems(r.problems()) {
			names = append(names, p.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

func onlyAMD64(arch string) error {
	if arch != "amd64" {
		return errors.New("it is " + arch)
	}
	return nil
}
