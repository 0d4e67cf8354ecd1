package controlplane

import (
	"bytes"
	"crypto/sha256"
	"crypto/x509"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func fresh(t *testing.T) PKI {
	t.Helper()
	files := host.Files{Root: t.TempDir()}
	if err := os.MkdirAll(files.Path(host.StateDir), 0o700); err != nil {
		t.Fatal(err)
	}
	return PKI{Now: func() time.Time { return now }, HostSettings: HostSettings{
		Files: files, HostName: "node-1", IP: "10.0.0.1", APIPort: 6443,
		ServiceCIDR: netip.MustParsePrefix("10.96.0.0/16"), DNSDomain: "cluster.local",
	}}
}

// pods returns the static pods of the host of c.
func pods(c PKI) StaticPods {
	return StaticPods{
		HostSettings: c.HostSettings, Image: func(string) string {
			return "registry.example/hyperkube:v1.36.3"
		}, EtcdEndpoints: []string{"https://127.0.0.1:2379"},
		KubernetesVersion: "v1.36.3", Single: true, ExtraArgs: config.Config{}.ExtraArgs,
	}
}

// world prints all files below a root, save the note of directories we made.
func world(t *testing.T, files host.Files) func() string {
	return func() string {
		var b strings.Builder
		err := filepath.WalkDir(files.Root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || strings.HasSuffix(path, "/made-dirs") {
				return err
			}
			info, err := d.Info()
			if err != nil {
				return err
			}
			var sum [32]byte
			if d.Type().IsRegular() {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				sum = sha256.Sum256(data)
			}
			fmt.Fprintf(&b, "%s %s %x\n", path, info.Mode(), sum[:4])
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		return b.String()
	}
}

func issue(t *testing.T, c PKI) {
	t.Helper()
	if err := c.Certificates().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func diff(t *testing.T, c PKI) []string {
	t.Helper()
	d, err := c.Certificates().Check(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestContracts(t *testing.T) {
	c := fresh(t)
	hosttest.Contract(t, world(t, c.Files), c.Certificates())
	issue(t, c)
	hosttest.Contract(t, world(t, c.Files), pods(c).WriteAPIServer())
	hosttest.Contract(t, world(t, c.Files), pods(c).WriteControllers())
}

func TestCertificates(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	data, cert := servingCertificate(t, c)
	for _, name := range []string{
		"node-1", "10.0.0.1", "10.96.0.1", "127.0.0.1", "localhost", "kubernetes",
		"kubernetes.default.svc.cluster.local",
	} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	ca, _ := c.Files.Read(PKIDir + "/ca.crt")
	if !bytes.HasSuffix(data, ca) {
		t.Error("apiserver.crt must end with the authority, for joining hosts to pin")
	}
	for _, file := range certificateFiles() {
		info, err := os.Stat(c.Files.Path(file))
		if err != nil {
			t.Error(err)
		} else if info.Mode().Perm() != modeOf(file) {
			t.Errorf("%s has mode %o", file, info.Mode().Perm())
		}
	}
	if pair, err := c.NodeCertificate(t.Context()); err != nil || !bytes.Contains(pair, []byte("PRIVATE KEY")) {
		t.Errorf("NodeCertificate: %v", err)
	}
}

func TestExpiredLeafIsIssuedAgainAndNothingElse(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	before := snapshot(t, c)
	later := c
	later.Now = func() time.Time { return now.Add(pki.LeafLife - 10*24*time.Hour) }
	if d := diff(t, later); len(d) != len(c.leaves()) {
		t.Errorf("near the end: %q", d)
	}
	issue(t, later)
	if d := diff(t, later); len(d) > 0 {
		t.Errorf("after renewal: %q", d)
	}
	for path, data := range snapshot(t, c) {
		same := bytes.Equal(data, before[path])
		keep := strings.Contains(path, "ca.") || strings.Contains(path, "ca-") || strings.Contains(path, "sa.") ||
			path == encryptionFile
		if same != keep {
			t.Errorf("%s: unchanged %t, want %t", path, same, keep)
		}
	}
}

func TestMovedHost(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	c.IP = "10.0.0.2"
	d := strings.Join(diff(t, c), "\n")
	for _, want := range []string{"apiserver.crt", "etcd/server.crt", "etcd/peer.crt", "admin.conf", "scheduler.conf"} {
		if !strings.Contains(d, want) {
			t.Errorf("no word of %s in %s", want, d)
		}
	}
	if strings.Contains(d, "flannel") || strings.Contains(d, "make ") {
		t.Errorf("too much: %s", d)
	}
}

func TestExtraNamesReissueTheServingCertificateAlone(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	c.ExtraNames = []string{"k8s.example.com", "*.lan", "192.0.2.7", "2001:db8::7"}
	want := "issue " + PKIDir + "/apiserver.crt: serves "
	if d := diff(t, c); len(d) != 1 || !strings.HasPrefix(d[0], want) {
		t.Fatalf("%q, want one difference %q...", d, want)
	}
	issue(t, c)
	_, cert := servingCertificate(t, c)
	for _, name := range []string{"node-1", "k8s.example.com", "api.lan", "192.0.2.7", "2001:db8::7"} {
		if err := cert.VerifyHostname(name); err != nil {
			t.Error(err)
		}
	}
	if d := diff(t, c); len(d) > 0 {
		t.Errorf("after the issue: %q", d)
	}
}

func TestAuthorities(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	hash := authorityHash(t, c)
	if err := c.Files.Remove(PKIDir + "/ca.crt"); err != nil {
		t.Fatal(err)
	}
	issue(t, c) // a run killed between key and certificate goes on with the key
	if authorityHash(t, c) != hash {
		t.Error("the authority changed")
	}
	if err := c.Files.Remove(PKIDir + "/ca.key"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Certificates().Check(t.Context()); err == nil || !strings.Contains(err.Error(), "put the key back") {
		t.Errorf("without its key: %v", err)
	}
}

func TestSecondControlPlaneSharesTheAuthority(t *testing.T) {
	first, second := fresh(t), fresh(t)
	issue(t, first)
	if err := pods(first).WriteAPIServer().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	second.Joins = true
	if d := diff(t, second); !strings.Contains(strings.Join(d, "\n"), "take over /etc/kubernetes/pki/ca.crt") {
		t.Errorf("before it is handed anything: %q", d)
	}
	if err := second.Certificates().Apply(t.Context()); err == nil || second.Files.Exists(PKIDir+"/ca.key") {
		t.Errorf("it made an authority of its own: %v", err)
	}
	if d, err := pods(second).WriteAPIServer().Check(t.Context()); err != nil || len(d) == 0 {
		t.Errorf("static pods before it is handed anything: %q, %v", d, err)
	}
	shared, err := Shared(first.Files)
	if err != nil {
		t.Fatal(err)
	}
	if err := second.Files.Put(shared); err != nil {
		t.Fatal(err)
	}
	second.IP, second.HostName = "10.0.0.2", "node-2"
	diff(t, second)
	issue(t, second)
	if d := diff(t, second); len(d) > 0 {
		t.Errorf("%q", d)
	}
	if authorityHash(t, first) != authorityHash(t, second) {
		t.Error("two authorities in one cluster")
	}
}

// TestAuthoritiesAreApart checks that a worker's certificates are not valid
// between control planes, and that a kubelet's serving certificate is not valid
// for the API server.
func TestAuthoritiesAreApart(t *testing.T) {
	c := fresh(t)
	signers := map[string]string{}
	for _, l := range c.leaves() {
		signers[l.path] = l.signer
		if l.signer == kubeletCA &&
			(l.request.Client || !slices.Equal(l.request.Hosts, []string{"localhost", "127.0.0.1"})) {
			t.Errorf("%s comes from the authority of the kubelets", l.path)
		}
	}
	for path, signer := range signers {
		// all that etcd accepts
		if (signer == EtcdPeerCA) != slices.Contains([]string{EtcdPeer, EtcdRoot, FlannelClient}, path) {
			t.Errorf("%s comes from %s", path, signer)
		}
	}
	args := strings.Join(append(flagsOf(t, pods(c), "kube-controller-manager"),
		flagsOf(t, pods(c), "kube-apiserver")...), "\n")
	for _, want := range []string{
		"--cluster-signing-kubelet-serving-cert-file=" + signingFile(kubeletCA),
		"--cluster-signing-kube-apiserver-client-cert-file=" + signingFile(ClusterCA),
		"--kubelet-certificate-authority=" + kubeletCA + ".crt",
	} {
		if !strings.Contains(args, want) {
			t.Errorf("no %s in\n%s", want, args)
		}
	}
}

func snapshot(t *testing.T, c PKI) map[string][]byte {
	t.Helper()
	all := map[string][]byte{}
	for _, path := range certificateFiles() {
		// The key of an authority may stay, that of a leaf may not.
		data, err := c.Files.Read(path)
		if err != nil {
			t.Fatal(err)
		}
		all[path] = data
	}
	return all
}

// servingCertificate returns the file of the API server's certificate and its
// first certificate.
func servingCertificate(t *testing.T, c PKI) (data []byte, cert *x509.Certificate) {
	t.Helper()
	data, err := c.Files.Read(PKIDir + "/apiserver.crt")
	if err != nil {
		t.Fatal(err)
	}
	cert, err = pki.ParseCertificate(data)
	if err != nil {
		t.Fatal(err)
	}
	return data, cert
}

// authorityHash returns what joining hosts pin.
func authorityHash(t *testing.T, c PKI) string {
	t.Helper()
	cert, err := pki.ParseCertificate(content(c.Files, ClusterCA+".crt"))
	if err != nil {
		t.Fatal(err)
	}
	return pki.Hash(cert)
}
