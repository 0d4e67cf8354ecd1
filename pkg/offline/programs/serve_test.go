package programs

import (
	"bufio"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// TestServe: the program is served with the announced key, until the input ends.
func TestServe(t *testing.T) {
	in, stop := io.Pipe()
	out, said := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Serve(t.Context(), netip.MustParseAddr("127.0.0.1"), in, said) }()
	line, err := bufio.NewReader(out).ReadString('\n')
	must.NoError(t, err)
	port, key, _ := strings.Cut(strings.TrimSpace(line), " ")
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	response, err := client.Get("https://127.0.0.1:" + port + "/")
	must.NoError(t, err)
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	must.NoError(t, err)
	own, err := os.Executable()
	must.NoError(t, err)
	if string(content) != string(must.Read(t, own)) {
		t.Errorf("%d bytes differ from the program", len(content))
	}
	sum := sha256.Sum256(response.TLS.PeerCertificates[0].RawSubjectPublicKeyInfo)
	if want := "sha256//" + base64.StdEncoding.EncodeToString(sum[:]); key != want {
		t.Errorf("key %s, want %s", key, want)
	}
	must.NoError(t, stop.Close())
	must.NoError(t, <-ended)
}
