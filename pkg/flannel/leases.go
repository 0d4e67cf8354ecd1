package flannel

import (
	"context"
	"encoding/json"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// aliveEvery is the interval of keepalive probes on a connection to etcd.
const aliveEvery = 10 * time.Second

// hostLease is a lease in etcd.
type hostLease struct {
	key     string
	subnet  netip.Prefix
	host    netip.Addr // PublicIP, under which the other hosts reach the host
	backend string
	mac     string // of the VXLAN link
}

// Etcd is the access of flanneld to etcd.
type Etcd struct {
	Files         host.Files
	Endpoints     []string // "https://10.0.0.1:2379"
	CA, Cert, Key string   // client certificate of this host's etcd user; paths of the host
}

func (e Etcd) client(ctx context.Context) (*clientv3.Client, error) {
	trust, err := host.ClientTLS(e.Files, e.CA, e.Cert, e.Key)
	if err != nil {
		return nil, err
	}
	return clientv3.New(clientv3.Config{
		Context:     ctx,
		Endpoints:   e.Endpoints,
		TLS:         trust,
		Logger:      zap.NewNop(),
		DialOptions: []grpc.DialOption{grpc.WithNoProxy()}, // gRPC would use HTTPS_PROXY
		// A host that lost power does not close its connections.
		DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveEvery,
	})
}

// leases reads the leases of all hosts. It works without a leader of etcd.
func leases(ctx context.Context, client *clientv3.Client) (all []hostLease, err error) {
	found, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return nil, step.NoAnswer(fmt.Errorf("read %s: %w", subnetsKey, err))
	}
	for _, kv := range found.Kvs {
		if l, ok := parseHostLease(string(kv.Key), kv.Value); ok {
			all = append(all, l)
		}
	}
	return all, nil
}

// leasesOf reads the leases of the host with an address.
func leasesOf(ctx context.Context, client *clientv3.Client, publicIP string) ([]hostLease, error) {
	all, err := leases(ctx, client)
	return slices.DeleteFunc(all, func(l hostLease) bool { return l.host.String() != publicIP }), err
}

// parseHostLease parses an IPv4 lease. Like flanneld, it skips everything else.
func parseHostLease(key string, value []byte) (hostLease, bool) {
	name, _, _ := strings.Cut(strings.TrimPrefix(key, subnetsKey), "&") // the part after & is for IPv6
	subnet, err := netip.ParsePrefix(strings.Replace(name, "-", "/", 1))
	if err != nil {
		return hostLease{}, false
	}
	var v struct {
		PublicIP, BackendType string
		BackendData           struct{ VtepMAC string }
	}
	if json.Unmarshal(value, &v) != nil {
		return hostLease{}, false
	}
	host, err := netip.ParseAddr(v.PublicIP)
	return hostLease{key, subnet, host, v.BackendType, v.BackendData.VtepMAC}, err == nil
}

// WatchLeases calls tell when the watch begins and after each change of a lease, until
// ctx ends. flanneld watches too. But after a lost connection flanneld 0.28.4 requests
// the changes since its start, and gets none if etcd has compacted that revision.
func (e Etcd) WatchLeases(ctx context.Context, tell func()) error {
	client, err := e.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close() // ends the watch too
	for answer := range client.Watch(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", subnetsKey, err)
		}
		tell()
	}
	return ctx.Err()
}

// Lease is this host's subnet of the network.
type Lease struct {
	Network netip.Prefix // of the cluster
	Subnet  netip.Prefix // of this host, with the address of its bridge: 10.1.3.1/24
	MTU     int          // of the containers' interfaces
}

// ReadLease reads subnet.env in flanneld's subnet directory. It returns
// fs.ErrNotExist if flanneld has not written it yet.
func ReadLease(files host.Files, dir string) (Lease, error) {
	path := filepath.Join(dir, leaseFile)
	data, err := files.Read(path)
	if err != nil {
		return Lease{}, err
	}
	lease, err := parseLease(string(data))
	if err != nil {
		return Lease{}, fmt.Errorf("%s: %w", path, err)
	}
	return lease, nil
}

func parseLease(text string) (Lease, error) {
	values, err := parseEnv(text)
	if err != nil {
		return Lease{}, err
	}
	var l Lease
	if l.Network, err = netip.ParsePrefix(values["FLANNEL_NETWORK"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_NETWORK: %w", err)
	}
	if l.Subnet, err = netip.ParsePrefix(values["FLANNEL_SUBNET"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_SUBNET: %w", err)
	}
	if l.MTU, err = strconv.Atoi(values["FLANNEL_MTU"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_MTU: %w", err)
	}
	if _, err = strconv.ParseBool(values["FLANNEL_IPMASQ"]); err != nil {
		return Lease{}, fmt.Errorf("FLANNEL_IPMASQ: %w", err)
	}
	return l, l.validate()
}

// parseEnv parses KEY=VALUE lines. Other lines and duplicate keys are damages.
func parseEnv(text string) (map[string]string, error) {
	values := map[string]string{}
	if !strings.HasSuffix(text, "\n") {
		return nil, fmt.Errorf("the last line is truncated")
	}
	for line := range strings.Lines(text) {
		key, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "=")
		if !ok || !strings.HasPrefix(key, "FLANNEL_") {
			return nil, fmt.Errorf("not a FLANNEL_ setting: %q", line)
		}
		if _, twice := values[key]; twice {
			return nil, fmt.Errorf("%s occurs twice", key)
		}
		values[key] = value
	}
	return values, nil
}

func (l Lease) validate() error {
	switch {
	case !l.Network.Addr().Is4() || l.Network != l.Network.Masked():
		return fmt.Errorf("FLANNEL_NETWORK %s is not an IPv4 network", l.Network)
	case !l.Subnet.Addr().Is4() || l.Subnet.Bits() > 30:
		return fmt.Errorf("FLANNEL_SUBNET %s is not an IPv4 network with addresses for containers", l.Subnet)
	case l.Subnet.Bits() <= l.Network.Bits() || !l.Network.Contains(l.Subnet.Addr()):
		return fmt.Errorf("FLANNEL_SUBNET %s is not a part of FLANNEL_NETWORK %s", l.Subnet, l.Network)
	case l.Subnet.Addr() != l.Subnet.Masked().Addr().Next():
		return fmt.Errorf("FLANNEL_SUBNET %s is not the first address of its network", l.Subnet)
	case l.MTU < 68 || l.MTU > 65535:
		return fmt.Errorf("FLANNEL_MTU %d is not a valid MTU of IPv4", l.MTU)
	}
	return nil
}
