package host

import (
	"os/exec"
	"path/filepath"
)

// ProgramDirs are the directories in which distributions and Docker's
// packages install executables, whatever PATH this process has.
var ProgramDirs = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin", "/opt/bin"}

// Program returns the path of an executable of the host, or "".
func (f Files) Program(name string) string {
	for _, dir := range ProgramDirs {
		if path := filepath.Join(dir, name); f.Exists(path) {
			return path
		}
	}
	return ""
}

// HasProgram reports whether the host has an executable in ProgramDirs.
func (f Files) HasProgram(name string) bool { return f.Program(name) != "" }

// HasProgram reports whether PATH contains an executable.
func HasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
