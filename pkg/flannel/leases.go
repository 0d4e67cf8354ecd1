package flannel

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"slices"
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
	wgKey   string // public key of the WireGuard link
}

// EtcdAccess is the access of flanneld to etcd.
type EtcdAccess struct {
	Files         host.Files
	Endpoints     []string // "https://10.0.0.1:2379"
	CA, Cert, Key string   // client certificate of this host's etcd user; paths of the host
}

func (e EtcdAccess) client(ctx context.Context) (*clientv3.Client, error) {
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

// leases reads the leases of all hosts. It works without a leader of etcd. It skips
// a lease that no host of the cluster may have, see parseHostLease: one host must not
// be able to stop the others.
func leases(ctx context.Context, client *clientv3.Client) (all []hostLease, err error) {
	all, _, err = sortedLeases(ctx, client)
	return all, err
}

// sortedLeases returns the leases of hosts, and the errors of all others.
func sortedLeases(ctx context.Context, client *clientv3.Client) (all []hostLease, skipped []error, err error) {
	found, err := client.Get(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithSerializable())
	if err != nil {
		return nil, nil, step.NoAnswer(fmt.Errorf("read %s: %w", subnetsKey, err))
	}
	for _, kv := range found.Kvs {
		l, err := parseHostLease(string(kv.Key), kv.Value)
		if err != nil {
			skipped = append(skipped, fmt.Errorf("skip the lease %s: %w", kv.Key, err))
			continue
		}
		all = append(all, l)
	}
	return all, skipped, nil
}

// leasesOf reads the leases of the host with an address.
func leasesOf(ctx context.Context, client *clientv3.Client, publicIP netip.Addr) ([]hostLease, error) {
	all, err := leases(ctx, client)
	return slices.DeleteFunc(all, func(l hostLease) bool { return l.host != publicIP }), err
}

// parseHostLease parses a lease. It accepts only what flanneld reads in the same way, with the
// address of a machine and the MAC address that EnsureVTEP derives from it: flanneld and the
// filter of hosts act on both.
func parseHostLease(key string, value []byte) (l hostLease, err error) {
	name := strings.TrimPrefix(key, subnetsKey)
	l.key = key
	if l.subnet, err = netip.ParsePrefix(strings.Replace(name, "-", "/", 1)); err != nil || LeaseKey(l.subnet) != key ||
		!l.subnet.Addr().Is4() {
		return l, errors.New("its key is not an IPv4 subnet")
	}
	var v struct {
		PublicIP    string
		PublicIPv6  *string
		BackendType string
		BackendData struct {
			VNI       uint32
			VtepMAC   string
			PublicKey string
			Port      uint16
		}
	}
	if err := cmp.Or(plain(value), json.Unmarshal(value, &v)); err != nil {
		return l, err
	}
	l.backend, l.mac, l.wgKey = v.BackendType, v.BackendData.VtepMAC, v.BackendData.PublicKey
	if l.host, err = netip.ParseAddr(v.PublicIP); err != nil || !l.host.Is4() || !l.host.IsGlobalUnicast() ||
		v.PublicIPv6 != nil {
		return l, fmt.Errorf("PublicIP: %q is not the IPv4 address of a machine", v.PublicIP)
	}
	if l.backend == "vxlan" && l.mac != vtepMAC(l.host) {
		return l, fmt.Errorf("VtepMAC: %q is not the MAC address of %s, %s", l.mac, v.PublicIP, vtepMAC(l.host))
	}
	// A key with other unused bits at its end is the same key for WireGuard.
	if key, err := base64.StdEncoding.Strict().DecodeString(l.wgKey); l.backend == "wireguard" &&
		(err != nil || len(key) != wgKeyBytes) {
		return l, fmt.Errorf("PublicKey: %q is not a key of WireGuard", l.wgKey)
	}
	return l, nil
}

const wgKeyBytes = 32

// plain returns an error if flanneld could read the JSON differently from encoding/json. flanneld
// uses the last of several fields with the same name. It does not decode escape sequences in
// addresses. If flanneld cannot read a lease, it does not set the route, and the agent would restart
// flanneld again and again.
func plain(value []byte) error {
	if bytes.ContainsRune(value, '\\') {
		return errors.New("it has an escape sequence")
	}
	return eachOnce(json.NewDecoder(bytes.NewReader(value)))
}

// eachOnce returns an error if an object has two fields with the same name. encoding/json ignores
// the case of names.
func eachOnce(d *json.Decoder) error {
	token, err := d.Token()
	if token == json.Delim('[') {
		return errors.New("it has a list") // flanneld writes none
	}
	if err != nil || token != json.Delim('{') {
		return err
	}
	var names []string
	for d.More() {
		field, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := field.(string)
		if slices.ContainsFunc(names, func(other string) bool { return strings.EqualFold(name, other) }) {
			return fmt.Errorf("it has the field %q twice", name)
		}
		names = append(names, name)
		if err := eachOnce(d); err != nil {
			return err
		}
	}
	_, err = d.Token()
	return err
}

// Skipped returns the errors of the leases that this host ignores.
func (e EtcdAccess) Skipped(ctx context.Context) (skipped []error, err error) {
	client, err := e.client(ctx)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	_, skipped, err = sortedLeases(ctx, client)
	return skipped, err
}

// WatchLeases calls report when the watch begins and after each change of a lease, until
// ctx ends. flanneld watches too. But if etcd has meanwhile compacted the revision that flanneld
// 0.28.10 requests after a lost connection, it reads all leases and ignores changed ones.
// https://github.com/flannel-io/flannel/blob/v0.28.10/pkg/lease/lease.go#L117-L128
func (e EtcdAccess) WatchLeases(ctx context.Context, report func()) error {
	client, err := e.client(ctx)
	if err != nil {
		return err
	}
	defer client.Close() // ends the watch too
	for answer := range client.Watch(ctx, subnetsKey, clientv3.WithPrefix(), clientv3.WithCreatedNotify()) {
		if err := answer.Err(); err != nil {
			return fmt.Errorf("watch %s: %w", subnetsKey, err)
		}
		report()
	}
	return ctx.Err()
}
