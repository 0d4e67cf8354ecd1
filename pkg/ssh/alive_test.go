package ssh

import (
	"net"
	"sync"
	"testing"
	"time"

	cryptossh "golang.org/x/crypto/ssh"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/ssh/sshtest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// cutConn is a connection whose packets get lost after cut is closed.
type cutConn struct {
	net.Conn
	cut, ended chan struct{}
	once       sync.Once
}

func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	select {
	case <-c.cut:
		<-c.ended
		return 0, net.ErrClosed
	default:
		return n, err
	}
}

func (c *cutConn) Close() error {
	c.once.Do(func() { close(c.ended) })
	return c.Conn.Close()
}

// TestASilentServer: a connection ends if the server is silent, and not while it is heard.
func TestASilentServer(t *testing.T) {
	home := t.TempDir()
	public, _ := sshtest.Key(t, home, "id_ed25519", "")
	signer, err := cryptossh.ParsePrivateKey(must.Read(t, home+"/.ssh/id_ed25519"))
	must.NoError(t, err)
	tcp, err := net.Dial("tcp", sshtest.Start(t, sshtest.Limits{}, public).Addr)
	must.NoError(t, err)
	lossy := &cutConn{Conn: tcp, cut: make(chan struct{}), ended: make(chan struct{})}
	conn := heard(lossy)
	client, channels, requests, err := cryptossh.NewClientConn(conn, "", &cryptossh.ClientConfig{
		User: "root", Auth: []cryptossh.AuthMethod{cryptossh.PublicKeys(signer)},
		HostKeyCallback: cryptossh.InsecureIgnoreHostKey(),
	})
	must.NoError(t, err)
	ended := make(chan struct{})
	go func() {
		keepAlive(cryptossh.NewClient(client, channels, requests), conn, 10*time.Millisecond, 300*time.Millisecond)
		close(ended)
	}()
	stays := func(what string, each func()) {
		for range 60 {
			select {
			case <-ended:
				t.Fatalf("the connection has ended: %s", what)
			case <-time.After(10 * time.Millisecond):
				each()
			}
		}
	}
	stays("the server answers", func() {})
	close(lossy.cut)
	stays("no request is answered, and data arrives", func() { conn.last.Store(time.Now().UnixNano()) })
	<-ended
}
