package thishost

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
)

// needingLinux makes a command fail on a system that cannot be a host.
func needingLinux(c *cobra.Command) {
	if refused := wrongSystem(c.Name(), runtime.GOOS); refused != nil && c.RunE != nil {
		c.RunE = func(*cobra.Command, []string) error { return refused }
	}
}

// wrongSystem returns the error that a command cannot run on a system; nil for Linux.
func wrongSystem(name, system string) error {
	if system == "linux" {
		return nil
	}
	return exit.Firm(fmt.Errorf("%s acts on this host and needs Linux, and this machine runs %s", name, system))
}
