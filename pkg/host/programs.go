package host

import (
	"os/exec"
	"path/filepath"
)

// ProgramDirs are where distributions and Docker's own packages put programs,
// whatever PATH we were started with.
var ProgramDirs = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin", "/opt/bin"}

// Program returns the path of a program of the host, or nothing.
func (f Files) Program(name string) string {
	for _, dir := range ProgramDirs {
		if path := filepath.Join(dir, name); f.Exists(path) {
			return path
		}
	}
	return ""
}

// HasProgram reports whether the host has a program.
func (f Files) HasProgram(name string) bool { return f.Program(name) != "" }

// HasProgram reports whether a program is found in PATH.
func HasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
