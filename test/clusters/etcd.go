package clusters

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"net"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// PKIDir is the directory of the certificates of a host.
const PKIDir = "/etc/kubernetes/pki"

// EtcdPort and GatePort are ports of a control plane: etcd for control planes, and the gate for workers.
const EtcdPort, GatePort = "2379", "2382"

// EtcdClient shows the certificate of that name on the master.
func EtcdClient(t *testing.T, master hosts.Machine, name string) *clientv3.Client {
	t.Helper()
	return DialEtcd(t, master, EtcdPort, []tls.Certificate{CertificateOf(t, master, name)})
}

// CertificateOf reads a certificate and its key from a host.
func CertificateOf(t *testing.T, m hosts.Machine, name string) tls.Certificate {
	t.Helper()
	pair, err := tls.X509KeyPair([]byte(m.Sh(t, "cat "+PKIDir+"/"+name+".crt")),
		[]byte(m.Sh(t, "cat "+PKIDir+"/"+name+".key")))
	must.NoError(t, err)
	return pair
}

// DialEtcd returns a client of etcd, or of its gate, on a control plane.
func DialEtcd(t *testing.T, master hosts.Machine, port string, certs []tls.Certificate) *clientv3.Client {
	t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(master.Sh(t, "cat "+PKIDir+"/etcd/ca.crt")))
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{"https://" + net.JoinHostPort(master.IP, port)}, DialTimeout: 30 * time.Second,
		TLS:     &tls.Config{RootCAs: roots, Certificates: certs, MinVersion: tls.VersionTLS12},
		Context: t.Context(),
	})
	must.NoError(t, err)
	t.Cleanup(func() { client.Close() })
	return client
}

type etcdMember struct {
	Name                     string
	Learner, Leader, Healthy bool
	Revision                 int64
}

func members(t *testing.T, m hosts.Machine) ([]etcdMember, error) {
	t.Helper()
	var status struct{ Etcd []etcdMember }
	out, err := m.Try(t.Context(), "kube-bootstrap status -o json || [ $? = 5 ]")
	if err == nil {
		err = json.Unmarshal([]byte(out), &status)
	}
	return status.Etcd, err
}

// Voters expects n members of etcd, all with a vote and healthy, that have seen
// the same.
func Voters(t *testing.T, m hosts.Machine, n int) {
	t.Helper()
	wait.Until(t, time.Minute, fmt.Sprintf("%d members of etcd", n), func() error {
		all, err := members(t, m)
		if err != nil {
			return err
		}
		for _, member := range all {
			// A revision may pass between two questions.
			if member.Learner || !member.Healthy || all[0].Revision-member.Revision > 20 ||
				member.Revision-all[0].Revision > 20 {
				return fmt.Errorf("%+v", all)
			}
		}
		if len(all) != n {
			return fmt.Errorf("%+v", all)
		}
		return nil
	})
}
