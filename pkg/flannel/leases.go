package flannel

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/netip"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

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
	pair, err := host.ClientPair(e.Files, e.Cert, e.Key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", e.Cert, e.Key, err)
	}
	authority, err := e.Files.Read(e.CA)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return clientv3.New(clientv3.Config{
		Context:   ctx,
		Endpoints: e.Endpoints,
		TLS:       &tls.Config{RootCAs: pool, GetClientCertificate: pair, MinVersion: tls.VersionTLS12},
		Logger:    zap.NewNop(),
		// A host that lost power does not close its connections.
		DialKeepAliveTime: aliveEvery, DialKeepAliveTimeout: aliveEvery,
	})
}

// leases reads the leases of all hosts. The read is serializable, so that it
// works without a leader.
func leases(ctx context.Context, client *clientv3.Client) ([]hostLease, error) {
	found, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return nil, step.NoAnswer(fmt.Errorf("read %s: %w", subnetsKey, err))
	}
	var all []hostLease
	for _, kv := range found.Kvs {
		if l, ok := parseHostLease(string(kv.Key), kv.Value); ok {
			all = append(all, l)
		}
	}
	return all, nil
}

// parseHostLease parses an IPv4 lease. Like flanneld, it skips everything
// else.
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

// WatchLeases calls tell when the watch begins and after each change of a lease in
// etcd, until ctx ends. flanneld watches the leases too. But after a lost
// connection flanneld 0.28.4 requests the changes since its own start, and gets
// no events if etcd has compacted that revision.
func (e Etcd) WatchLeases(ctx context.Context, tell func()) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	client, err := e.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	for answer := range client.Watch(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", subnetsKey, err)
		}
		tell()
	}
	return ctx.Err()
}
