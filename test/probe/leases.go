package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"strconv"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// leases writes flannel leases of hosts that do not exist into the etcd of this
// control plane: a /24 for each address from first on.
func leases(ctx context.Context, endpoint, count, subnet, first string) error {
	n, err := strconv.Atoi(count)
	if err != nil {
		return err
	}
	client, err := etcdClient(ctx, endpoint)
	if err != nil {
		return err
	}
	defer client.Close()
	at, ip := netip.MustParseAddr(subnet).As4(), netip.MustParseAddr(first)
	for i := range n {
		key := fmt.Sprintf("/coreos.com/network/subnets/%d.%d.%d.0-24", at[0], int(at[1])+i/256, i%256)
		value, err := json.Marshal(map[string]any{
			"PublicIP": ip, "BackendType": "vxlan",
			"BackendData": map[string]any{"VNI": 1, "VtepMAC": mac(ip)},
		})
		if err != nil {
			return err
		}
		if _, err := client.Put(ctx, key, string(value)); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
		ip = ip.Next()
	}
	return nil
}

// etcdClient is the user root, as a host may write no lease but its own.
func etcdClient(ctx context.Context, endpoint string) (*clientv3.Client, error) {
	const dir = "/etc/kubernetes/pki/"
	pair, err := tls.LoadX509KeyPair(dir+"apiserver-etcd-client.crt", dir+"apiserver-etcd-client.key")
	if err != nil {
		return nil, err
	}
	authority, err := os.ReadFile(dir + "etcd/ca.crt")
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(authority)
	return clientv3.New(clientv3.Config{
		Context: ctx, Endpoints: []string{endpoint},
		TLS: &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12},
	})
}

// mac returns the MAC address that belongs to the address of a host.
func mac(host netip.Addr) string {
	ip := host.As4()
	return fmt.Sprintf("0a:4b:%02x:%02x:%02x:%02x", ip[0], ip[1], ip[2], ip[3])
}
