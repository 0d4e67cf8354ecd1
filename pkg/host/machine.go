package host

import (
	"fmt"
	"net"
	"os"
	"strings"
)

// HostName returns the host name in lower case, as a node is named.
func HostName() (string, error) {
	name, err := os.Hostname()
	return strings.ToLower(name), err
}

// PortFree returns an error if another process listens on the TCP port.
func PortFree(port int) error {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return err
	}
	return l.Close()
}
