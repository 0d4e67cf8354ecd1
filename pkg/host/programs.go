package host

import "os/exec"

// HasProgram reports whether a program is found in PATH.
func HasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
