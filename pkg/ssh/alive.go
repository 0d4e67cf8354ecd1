package ssh

import (
	"net"
	"sync/atomic"
	"time"

	cryptossh "golang.org/x/crypto/ssh"
)

const (
	aliveEvery = 5 * time.Second
	aliveLimit = 30 * time.Second
	// sendBuffer is what the kernel keeps of a file that is sent, in bytes. The answer to a request takes as
	// long as the link needs for what precedes the request.
	sendBuffer = 512 << 10
)

// heardConn records when the server was last heard.
type heardConn struct {
	net.Conn
	last atomic.Int64 // ns
}

func heard(conn net.Conn) *heardConn {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetWriteBuffer(sendBuffer)
	}
	c := &heardConn{Conn: conn}
	c.last.Store(time.Now().UnixNano())
	return c
}

func (c *heardConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if n > 0 {
		c.last.Store(time.Now().UnixNano())
	}
	return n, err
}

func (c *heardConn) silence() time.Duration { return time.Since(time.Unix(0, c.last.Load())) }

// keepAlive closes a connection whose server is silent for longer than a limit. A server that receives a
// file over a slow link answers requests late, but it reports what it has received.
func keepAlive(client *cryptossh.Client, conn *heardConn, every, limit time.Duration) {
	ended := make(chan struct{})
	go func() {
		_ = client.Wait()
		close(ended)
	}()
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	unanswered := make(chan struct{}, 1)
	for {
		select {
		case <-ended:
			return
		case <-ticker.C:
		}
		if conn.silence() > limit {
			_ = client.Close()
			return
		}
		select {
		case unanswered <- struct{}{}:
			go func() {
				_, _, _ = client.SendRequest("keepalive@openssh.com", true, nil)
				<-unanswered
			}()
		default:
		}
	}
}
