package kubelet

import (
	"context"
	"errors"
	"io/fs"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// kubectlPath is the path of kubectl in the kubelet's container, and on the host
// that of a script that calls it. The script is not a link to a program: a
// download to its path would overwrite the program.
const kubectlPath = "/usr/local/bin/kubectl"

func kubectlScript(binary string) []byte {
	return []byte("#!/bin/sh\n# Installed by kube-bootstrap, removed by `kube-bootstrap turndown`.\n" +
		"exec " + binary + " kubectl \"$@\"\n")
}

// InstallKubectl installs a kubectl, which runs `binary kubectl`, on a host without one.
func InstallKubectl(files host.Files, binary string) step.Step {
	script := kubectlScript(binary)
	missing := func() bool { return host.FindProgram(files, "kubectl") == "" }
	needed := func(context.Context) (bool, error) { return missing(), nil }
	s := step.When("kubectl", "install kubectl", "write "+kubectlPath, needed, func(context.Context) error {
		if !missing() {
			return nil
		}
		return files.Write(kubectlPath, script, 0o755)
	})
	s.Undo = func(context.Context) error {
		now, err := files.Read(kubectlPath)
		if err == nil && string(now) != string(script) {
			return files.RemoveHalfWritten(kubectlPath) // the user has installed another kubectl since
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return files.Remove(kubectlPath)
	}
	return s
}
