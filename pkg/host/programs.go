package host

import (
	"os/exec"
	"path/filepath"
)

// ProgramDirs are the directories in which distributions and Docker's
// packages install executables, whatever PATH this process has.
var ProgramDirs = []string{"/usr/bin", "/usr/sbin", "/usr/local/bin", "/usr/local/sbin", "/bin", "/sbin", "/opt/bin"}

// FindProgram returns the path of an executable in ProgramDirs, or "".
func FindProgram(files Files, name string) string {
	for _, dir := range ProgramDirs {
		if path := filepath.Join(dir, name); files.Exists(path) {
			return path
		}
	}
	return ""
}

// HasProgram reports whether PATH contains an executable.
func HasProgram(name string) bool {
	_, err := exec.LookPath(name)
	return err == nil
}
