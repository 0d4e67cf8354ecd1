// Package host is good: it may touch the machine.
package host

import "os/exec"

var _ = exec.Command
