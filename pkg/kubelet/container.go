package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const container = "kubelet"

// Container is the container of the kubelet on this host. Only Kubelet creates it.
type Container struct{ docker.Service }

// ContainerIn returns the container of the kubelet in the main Docker.
func ContainerIn(engine func() *docker.Engine) Container {
	return Container{docker.Service{Docker: engine, Name: container}}
}

// Explain returns the last complaints of the kubelet, for an error about it.
func (c Container) Explain() string {
	return complaints(c.Tail(context.Background(), searched), explained)
}

// Kubectl returns the path at which a process of this host can execute the
// kubectl of the container; running is false if there is no container. The
// program is static, so it works on the files and the terminal of the host.
func (c Container) Kubectl(ctx context.Context) (path string, running bool, err error) {
	pid, running, err := c.Docker().Process(ctx, container)
	return fmt.Sprintf("/proc/%d/root%s", pid, kubectlPath), running, err
}

// RestartAfter returns the step that restarts a kubelet which started before the
// time that end returns. The zero time requires nothing. Pods keep running.
func (c Container) RestartAfter(end func() time.Time) step.Step {
	return step.Step{
		Name: "restart the kubelet after an outage of the control plane",
		Check: func(ctx context.Context) (step.Diff, error) {
			at := end()
			if at.IsZero() {
				return nil, nil
			}
			started, runs, err := c.StartedAt(ctx)
			if err != nil || !runs || !started.Before(at) {
				return nil, err
			}
			return step.Diff{"restart the kubelet, which may wait up to a minute until it watches its pods again"}, nil
		},
		Apply: c.Restart,
	}
}

const (
	searched  = 400 // lines of the kubelet's log that may explain
	explained = 15  // lines that are told
)

// consequences are complaints that follow from others, and are repeated for every pod
// and second while the API server does not answer.
var consequences = []string{
	"mirror pod", "Unable to write event", "Server rejected event", "Error getting the current node from lister",
	"Nameserver limits exceeded", "node status will not be updated",
}

// complaints returns the last warnings and errors of a log, each once, or its end.
func complaints(log string, count int) string {
	lines := strings.Split(strings.TrimRight(log, "\n"), "\n")
	var kept []string
	seen := map[string]bool{}
	for _, line := range slices.Backward(lines) {
		if len(kept) == count {
			break
		}
		if message := messageOf(line); isComplaint(line) && !seen[message] {
			seen[message] = true
			kept = append(kept, line)
		}
	}
	slices.Reverse(kept)
	if len(kept) == 0 {
		kept = lines[max(0, len(lines)-count):]
	}
	return strings.Join(kept, "\n")
}

// isComplaint: "E1121 08:15:55.595397       1 kubelet.go:1198] ...", or what a
// program prints that ends at its start.
func isComplaint(line string) bool {
	info := strings.HasPrefix(line, "I") && strings.Contains(line, "] ")
	return line != "" && !info && !slices.ContainsFunc(consequences, func(c string) bool { return strings.Contains(line, c) })
}

// messageOf is a line without time, place and numbers: an interval may grow.
func messageOf(line string) string {
	if _, message, ok := strings.Cut(line, "] "); ok {
		line = message
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsDigit(r) {
			return -1
		}
		return r
	}, line)
}

// kubectlPath is the path of kubectl in the kubelet's container, and on the host
// that of a script that calls it. The script is not a link to a program: a
// download to its path would overwrite the program.
const kubectlPath = "/usr/local/bin/kubectl"

func kubectlScript(binary string) []byte {
	return []byte("#!/bin/sh\n# Installed by kube-bootstrap, removed by `kube-bootstrap turndown`.\nexec " + binary + " kubectl \"$@\"\n")
}

// InstallKubectl installs a kubectl, which runs `binary kubectl`, on a host without one.
func InstallKubectl(files host.Files, binary string) step.Step {
	script := kubectlScript(binary)
	return step.Step{
		Name: "install kubectl",
		Check: func(context.Context) (step.Diff, error) {
			if host.FindProgram(files, "kubectl") != "" {
				return nil, nil
			}
			return step.Diff{"write " + kubectlPath}, nil
		},
		Apply: func(context.Context) error {
			if host.FindProgram(files, "kubectl") != "" {
				return nil
			}
			return files.Write(kubectlPath, script, 0o755)
		},
		Undo: func(context.Context) error {
			now, err := files.Read(kubectlPath)
			if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(script) {
				return nil // the user has installed another kubectl since
			}
			if err != nil {
				return err
			}
			return files.Remove(kubectlPath)
		},
	}
}
