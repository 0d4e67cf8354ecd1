package transfer

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
)

// Offer is where machines fetch a file from another one.
type Offer struct{ URL, Key string }

// Fetch lets a machine fetch the file from another one.
func (f File) Fetch(ctx context.Context, to access.Executor, from Offer) error {
	digest, err := remote.Sum(f.From)
	if err != nil {
		return err
	}
	return access.RunScript(ctx, to, nil, fetchScript, f.To, f.modeText(), digest, from.URL, from.Key)
}

// ReadOffer reads the line of `kube-bootstrap serve-program`: its port and the hash of its key.
func ReadOffer(out io.Reader, addr netip.Addr) (Offer, error) {
	line, err := bufio.NewReader(out).ReadString('\n')
	port, key, ok := strings.Cut(strings.TrimSpace(line), " ")
	if err != nil || !ok {
		return Offer{}, fmt.Errorf("serve-program says %q: %w", line, err)
	}
	return Offer{URL: "https://" + net.JoinHostPort(addr.String(), port) + "/", Key: key}, nil
}
