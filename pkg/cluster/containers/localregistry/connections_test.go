package localregistry

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestConnectionsOfOneAddress: there is a limit, and closed connections do not count.
func TestConnectionsOfOneAddress(t *testing.T) {
	addr, _, _ := limited(t, t.TempDir(), DefaultCache)
	const request = "GET /v2/ HTTP/1.1\r\nHost: a.test\r\n\r\n"
	works := func(c net.Conn) bool {
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		_, err := c.Read(make([]byte, 1))
		return err == nil
	}
	var open []net.Conn
	for range nodes.Connections {
		c := dial(t, addr, request)
		if !works(c) {
			t.Fatal("a connection below the limit")
		}
		open = append(open, c)
	}
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, _ = io.WriteString(c, request); works(c) {
		t.Error("a connection above the limit")
	}
	for _, one := range open {
		one.Close()
	}
	for range 1000 {
		c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if _, _ = io.WriteString(c, request); works(c) {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Error("closed connections still count")
}

func TestALongName(t *testing.T) {
	_, s := serve(t, t.TempDir())
	for _, method := range []string{http.MethodGet, http.MethodPut} {
		if got := ask(t, method, s.URL+"/v2/"+strings.Repeat("a", 256)+"/manifests/v1",
			`{"config":{}}`); got.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %s", method, got.Status)
		}
	}
	header := strings.Repeat("x", nodes.Header+8192)
	if got := ask(t, http.MethodGet, "http://"+listen(t, s.Config.Handler)+"/v2/", "", "Cookie",
		header); got.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a header of %d bytes: %s", len(header), got.Status)
	}
}
