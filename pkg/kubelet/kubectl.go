package kubelet

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// kubectlPath is the path of kubectl in the kubelet's container, and on the host
// that of a script that calls it. The script is not a link to a program: a
// download to its path would overwrite the program.
const kubectlPath = "/usr/local/bin/kubectl"

func kubectlScript(binary string) []byte {
	return []byte("#!/bin/sh\n# Installed by kube-bootstrap, removed by `kube-bootstrap turndown`.\nexec " + binary + " kubectl \"$@\"\n")
}

// InstallKubectl installs a kubectl command on a host that has none. It runs
// `binary kubectl`.
func (k Kubelet) InstallKubectl(binary string) step.Step {
	script := kubectlScript(binary)
	return step.Step{
		Name: "install kubectl",
		Check: func(context.Context) (step.Diff, error) {
			if k.Files.HasProgram("kubectl") {
				return nil, nil
			}
			return step.Diff{"write " + kubectlPath}, nil
		},
		Apply: func(context.Context) error {
			if k.Files.HasProgram("kubectl") {
				return nil
			}
			return k.Files.Write(kubectlPath, script, 0o755)
		},
		Undo: func(context.Context) error {
			now, err := k.Files.Read(kubectlPath)
			if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(script) {
				return nil // the user has installed another kubectl since
			}
			if err != nil {
				return err
			}
			return k.Files.Remove(kubectlPath)
		},
	}
}

// Kubectl returns the path at which a process of this host can execute the
// kubectl of the kubelet's container; running is false if there is no such
// container. The program is static, so it works on the files and the terminal
// of the host.
func (k Kubelet) Kubectl(ctx context.Context) (path string, running bool, err error) {
	engine, err := k.Docker()
	if err != nil {
		return "", false, err
	}
	pid, running, err := engine.Process(ctx, container)
	return fmt.Sprintf("/proc/%d/root%s", pid, kubectlPath), running, err
}
