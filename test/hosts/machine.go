package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Machine is a test host.
type Machine struct {
	Name, IP string
	key      string // file with the SSH key of a machine with a kernel of its own
}

// OwnKernelSpace is the network namespace of the machines with a kernel of their own.
const OwnKernelSpace = "kube-bootstrap-machines"

// OwnKernel returns a machine in OwnKernelSpace that is reached by SSH with a key. It may answer late: each system call
// takes several times as long as on a test host.
func OwnKernel(name, ip, key string) Machine { return Machine{name, ip, key} }

// command returns the arguments that run a shell script on the machine.
func (m Machine) command(script string) []string {
	if m.key == "" {
		return []string{"docker", "exec", "-i", m.Name, "sh", "-c", script}
	}
	return []string{
		"ip", "netns", "exec", OwnKernelSpace, "ssh", "-i", m.key, "-o", "BatchMode=yes", "-o", "LogLevel=ERROR",
		"-o", "StrictHostKeyChecking=no", "-o", "UserKnownHostsFile=/dev/null", "-o", "ConnectTimeout=600",
		"-o", "ServerAliveInterval=60", "-o", "ServerAliveCountMax=10", "root@" + m.IP, script,
	}
}

// Try runs a shell script on the machine and returns its stdout.
func (m Machine) Try(ctx context.Context, script string) (string, error) {
	out, err := host.Command{Args: m.command(script)}.Run(ctx)
	return strings.TrimSpace(string(out)), err
}

// Sh is try that must succeed.
func (m Machine) Sh(t *testing.T, script string) string {
	t.Helper()
	out, err := m.Try(t.Context(), script)
	if err != nil {
		noteFailed(t.Name(), m.Name, err)
		t.Fatalf("%s: %v\n%s", m.Name, err, out)
	}
	return out
}

// Kubectl calls the kubectl that a control plane gets.
func (m Machine) Kubectl(t *testing.T, args string) string {
	t.Helper()
	return m.Sh(t, "kubectl "+args)
}

// Items decodes a list that a command has printed as JSON.
func Items[T any](t *testing.T, out string) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(out), &list); err != nil {
		t.Fatalf("not a list in JSON: %v\n%s", err, out)
	}
	return list.Items
}

// World prints everything on the machine that could have been changed.
func (m Machine) World(t *testing.T) string {
	t.Helper()
	out, err := host.Command{
		Args:  m.command("exec sh"),
		Stdin: strings.NewReader(hosttest.WorldScript),
	}.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: print the world: %v", m.Name, err)
	}
	return string(out)
}

// SettledWorld is the world of a machine on which nothing changes any more, for a comparison: what
// has just been started or ended may still change it.
func (m Machine) SettledWorld(t *testing.T) (world string) {
	t.Helper()
	wait.Until(t, time.Minute, "nothing changes on "+m.Name, func() error {
		world = m.World(t)
		time.Sleep(time.Second)
		if diff := hosttest.Diff(world, m.World(t)); len(diff) > 0 {
			return errors.New(strings.Join(diff[:min(len(diff), 80)], "\n"))
		}
		return nil
	})
	return world
}

// Put copies a file to the machine.
func (m Machine) Put(t *testing.T, local, path string) {
	t.Helper()
	_, err := host.Command{
		Args: m.command("mkdir -p " + filepath.Dir(path) + " && cat > " + path + ".new && chmod 755 " + path +
			".new && mv " + path + ".new " + path),
		Stdin: bytes.NewReader(must.Read(t, local)),
	}.Run(t.Context())
	if err != nil {
		t.Fatalf("%s: put %s: %v", m.Name, path, err)
	}
}

// Settles is how long the rest of a process or of a network namespace may stay
// that ends by itself. The kernel keeps a namespace, with its links, while a cut
// connection in it still waits for an answer: 102 s by default (tcp_orphan_retries).
const Settles = 4 * time.Minute

// SameWorld fails the test if the machine is not as it was.
func (m Machine) SameWorld(t *testing.T, what, before string) {
	t.Helper()
	var diff []string
	for end := time.Now().Add(Settles); ; time.Sleep(time.Second) {
		diff = hosttest.Diff(before, m.World(t))
		if len(diff) == 0 {
			return
		}
		if time.Now().After(end) {
			break
		}
	}
	t.Errorf("%s: %s changed the machine:\n%s", m.Name, what, strings.Join(diff[:min(len(diff), 80)], "\n"))
	links, _ := m.Try(t.Context(), "ip -o link show type veth; lsns -t net; dmesg | grep unregister_netdevice | "+
		"tail -n 5")
	t.Logf("links and network namespaces of %s:\n%s", m.Name, links)
}

// Ask runs the program and returns its exit code and what it says.
func (m Machine) Ask(t *testing.T, prefix, args, bundle string) (code, says string) {
	t.Helper()
	args = strings.ReplaceAll(args, "$B", bundle)
	out := m.Sh(t, prefix+" kube-bootstrap "+args+" 2>&1 </dev/null; code=$?; echo; echo $code")
	i := strings.LastIndex(out, "\n")
	return out[i+1:], out[:max(i, 0)]
}

// ProblemNames are those at the end of the lines that tell a problem.
func ProblemNames(says string) (names []string) {
	for line := range strings.Lines(says) {
		line = strings.TrimSpace(line)
		if i := strings.LastIndex(line, "["); strings.HasPrefix(line, "!!!") && i >= 0 && strings.HasSuffix(line, "]") {
			names = append(names, line[i+1:len(line)-1])
		}
	}
	return names
}

// Running lists the containers of both engines and of containerd with the time
// they were started: the same before and after means that nothing was touched.
func (m Machine) Running(t *testing.T) string {
	t.Helper()
	return m.Sh(t, `for s in /run/docker.sock /run/docker-bootstrap.sock; do
	docker -H unix://$s ps -q --no-trunc | sort | xargs -r docker -H unix://$s inspect -f '{{.Id}} {{.State.StartedAt}}'
done; ctr -n k8s.io tasks ls -q | sort; pgrep -ax "dockerd|containerd|etcd|flanneld" | sort`)
}

// Steady is running once nothing starts or ends any more: a command returns before the last pod
// of CoreDNS has started, and the agents move it when a node has joined.
func (m Machine) Steady(t *testing.T) (running string) {
	t.Helper()
	const pause = 5 * time.Second
	wait.Until(t, time.Minute, m.Name+" starts and ends nothing", func() error {
		running = m.Running(t)
		time.Sleep(pause)
		if is := m.Running(t); is != running {
			return fmt.Errorf("within %s:\n%s\nthen\n%s", pause, running, is)
		}
		return nil
	})
	return running
}

// AsMaster are the arguments of a control plane for Ask.
const AsMaster = "master --bundle $B"

// AsWorker are the arguments of a worker for Ask, with a token that no cluster has.
const AsWorker = "worker --bundle $B --token abcdef.0123456789abcdef" +
	" --ca-cert-hash sha256:0000000000000000000000000000000000000000000000000000000000000000 "
