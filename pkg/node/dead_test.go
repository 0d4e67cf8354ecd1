package node

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestWhoSpeaksTLSIsAlive(t *testing.T) {
	kubelet := httptest.NewTLSServer(http.NotFoundHandler())
	address := kubelet.Listener.Addr().String()
	if !speaksTLS(t.Context(), address) {
		t.Error("a server with a certificate of an authority that nobody knows is taken for dead")
	}
	kubelet.Close()
	if speaksTLS(t.Context(), address) {
		t.Error("a closed port is taken for alive")
	}
}

func TestWhoAcceptsAndSaysNothingIsNotAlive(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	go func() {
		conn, err := l.Accept()
		if err == nil {
			conn.Close()
		}
	}()
	defer l.Close()
	if speaksTLS(t.Context(), l.Addr().String()) {
		t.Error("a port that hangs up is taken for alive")
	}
}
