//go:build e2e

package e2e

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// holder is a client with the token of a cluster, or with another credential.
type holder struct {
	clusters.JoinToken
	as string // arguments of curl with another credential than the token
}

func holderOf(t *testing.T, master hosts.Machine, args ...string) holder {
	t.Helper()
	return holder{JoinToken: clusters.NewToken(t, master, args...)}
}

const (
	kubeletSigner = "kubernetes.io/kube-apiserver-client-kubelet"
	flannelSigner = "kube-bootstrap.dev/flannel"
)

// nodeAsks has a worker request certificates as its node: no control plane approves them.
func nodeAsks(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	asNode := holder{
		JoinToken: clusters.JoinToken{
			MasterIP: master.IP,
		}, as: "--cert /var/lib/kubelet/pki/kubelet-client-current.pem",
	}
	for subject, signer := range map[string]string{
		"/O=system:masters/CN=x":                               "kubernetes.io/kube-apiserver-client",
		"/O=system:nodes/CN=system:node:" + master.Name:        kubeletSigner,
		"/O=kube-bootstrap:agents/CN=x":                        "kubernetes.io/kube-apiserver-client",
		"/O=kube-bootstrap:cluster-admins/CN=kubernetes-admin": "kubernetes.io/kube-apiserver-client",
	} {
		_ = asNode.requests(t, worker, subject, signer) // refused by the API server, or never approved
	}
	for _, subject := range []string{
		"/CN=flannel:" + master.Name, "/CN=flannel:free", "/CN=root", "/CN=flannel:" + worker.Name + ":00000000",
	} {
		asNode.asks(t, worker, subject, flannelSigner, "Denied")
	}
	approved := master.Kubectl(t,
		`get csr -o 'jsonpath={range .items[*]}`+
			`{.metadata.name} {.spec.username} {.spec.signerName} {.status.conditions[*].type}{"\n"}{end}'`)
	for line := range strings.Lines(approved) {
		if strings.HasPrefix(line, "token-test-") && strings.Contains(line, " system:node:"+worker.Name+" ") &&
			strings.Contains(line, "Approved") {
			t.Errorf("approved: %s", line)
		}
	}
}

// tokens tries what the holder of a bootstrap token must not be able to do.
func tokens(t *testing.T, master, worker hosts.Machine) {
	t.Helper()
	t.Run("takes no name of a node", func(t *testing.T) {
		token := holderOf(t, master)
		for _, node := range []hosts.Machine{master, worker} {
			token.asks(t, worker, "/O=system:nodes/CN=system:node:"+node.Name, kubeletSigner, "Denied")
			token.asks(t, worker, "/CN=flannel:"+node.Name, flannelSigner, "Denied")
		}
		token.asks(t, worker, "/CN=root", flannelSigner, "Denied")
		holderOf(t, master, "--reusable").asks(t, worker, "/CN=flannel:"+worker.Name, flannelSigner, "Denied")
		holderOf(t, master, "--node", "free").asks(t, worker, "/CN=flannel:"+worker.Name, flannelSigner, "Denied")
	})
	t.Run("is for one host", func(t *testing.T) {
		token := holderOf(t, master)
		token.asks(t, worker, "/CN=flannel:free", flannelSigner, "Approved")
		defer master.Sh(t, "kube-bootstrap forget free")
		token.asks(t, worker, "/CN=flannel:free-2", flannelSigner, "Denied")
		token.asks(t, worker, "/O=system:nodes/CN=system:node:free-2", kubeletSigner, "Denied")
		if listed := master.Sh(t, "kube-bootstrap token list -o json"); !strings.Contains(listed, `"usedBy": "free"`) {
			t.Errorf("token list shows no use by free:\n%s", listed)
		}
	})
	t.Run("of a worker does not read what control planes share", func(t *testing.T) {
		const shared = "api/v1/namespaces/kube-system/secrets/kube-bootstrap-control-plane"
		ofControlPlane := holderOf(t, master, "--control-plane")
		if got := ofControlPlane.reads(t, worker, shared); got != "200" {
			t.Errorf("a token of a control plane: %s", got)
		}
		if got := holderOf(t, master).reads(t, worker, shared); got != "403" {
			t.Errorf("a token of a worker: %s", got)
		}
		if got := ofControlPlane.reads(t, worker,
			"apis/certificates.k8s.io/v1/certificatesigningrequests"); got != "403" {
			t.Errorf("a token of a control plane reads signing requests: %s", got)
		}
	})
	if kept := master.Sh(t, "kube-bootstrap token list -o json"); strings.Contains(kept,
		`"usedBy": "`+worker.Name+`"`) {
		t.Errorf("the token of %s was not deleted:\n%s", worker.Name, kept)
	}
}

// asks requests a client certificate and wants the control plane to decide so.
func (j holder) asks(t *testing.T, from hosts.Machine, subject, signer, decision string) {
	t.Helper()
	name := j.requests(t, from, subject, signer)
	if name == "" {
		t.Fatalf("the request for %s was not accepted", subject)
	}
	wait.Until(t, time.Minute, "a decision on "+subject, func() error {
		out := from.Sh(t, j.curl()+" "+j.requestsURL()+"/"+name)
		if !strings.Contains(out, `"type": "`) {
			return errors.New(out)
		}
		if !strings.Contains(out, `"type": "`+decision+`"`) {
			t.Errorf("%s is not %s: %s", subject, decision, out)
		}
		return nil
	})
}

func (j holder) requestsURL() string {
	return "https://" + j.MasterIP + ":6443/apis/certificates.k8s.io/v1/certificatesigningrequests"
}

// requests requests a client certificate, and returns the name of the request, "" if the API
// server refuses it.
func (j holder) requests(t *testing.T, from hosts.Machine, subject, signer string) string {
	t.Helper()
	const request = `cd /dev/shm && openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes \
	-keyout r.key -out r.csr \
	-subj "$SUBJECT" 2>/dev/null &&
printf '{"apiVersion":"certificates.k8s.io/v1","kind":"CertificateSigningRequest",
"metadata":{"generateName":"token-test-"},
"spec":{"request":"%s","signerName":"%s","usages":["digital signature","client auth"]}}' $(base64 -w0 <r.csr) $SIGNER |
$CURL -d @- $REQUESTS | sed -n 's/.*"name": "\(token-test-[^"]*\)".*/\1/p'; rm -f r.key r.csr`
	j.known(t, from)
	return from.Sh(t, "SUBJECT='"+subject+"'; SIGNER="+signer+"; REQUESTS="+j.requestsURL()+"; CURL='"+j.curl()+"'\n"+
		request)
}

// curl is the command of a client that shows the token, or another credential.
func (j holder) curl() string {
	credential := j.as
	if credential == "" {
		credential = "--oauth2-bearer " + j.Token
	}
	return "curl -s --cacert " + clusters.PKIDir + "/ca.crt -H Content-Type:application/json " + credential
}

// known waits until the API server knows the token: it learns of new ones from a watch.
func (j holder) known(t *testing.T, from hosts.Machine) {
	t.Helper()
	hosts.Says(t, time.Minute, "the API server to know the token", from,
		j.curl()+" -o /dev/null -w '%{http_code}' https://"+j.MasterIP+":6443/version", "200")
}

// reads returns the status code of a request with the token.
func (j holder) reads(t *testing.T, from hosts.Machine, path string) string {
	t.Helper()
	j.known(t, from)
	return from.Sh(t, j.curl()+" -o /dev/null -w '%{http_code}' https://"+j.MasterIP+":6443/"+path)
}
