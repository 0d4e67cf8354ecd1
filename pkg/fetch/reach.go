package fetch

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/name"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const (
	// connectLimit is how long a name server and a server have to accept a connection.
	// Firewalls drop packets without an answer. One lost packet is sent again after a
	// second.
	connectLimit = 3 * time.Second
	// answerLimit is how long the answer may take, which is only of interest if it is an
	// error of TLS or of a proxy.
	answerLimit = 5 * time.Second
)

// Server returns the URL of the server of an image, with regard to mirrors.
func (c *Downloader) Server(ref string) (string, error) {
	parsed, err := name.ParseReference(ref)
	if err != nil {
		return "", err
	}
	if m, ok := c.mirrors[registryName(parsed)]; ok {
		return m.URL() + "/v2/", nil
	}
	return "https://" + parsed.Context().RegistryStr() + "/v2/", nil
}

// Reachable returns nil if the server of a URL accepts a connection, whatever it answers
// and how slowly: only a server that nothing leads to, and one whose certificate is
// wrong, cannot be reached.
func (c *Downloader) Reachable(ctx context.Context, address string) error {
	u, err := url.Parse(address)
	if err != nil {
		return err
	}
	var connected atomic.Bool
	ctx, cancel := context.WithTimeout(ctx, answerLimit) //nolint:forbidigo // connectLimit, then an error of TLS
	defer cancel()
	defer time.AfterFunc(connectLimit, func() {
		if !connected.Load() {
			cancel()
		}
	}).Stop()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) {
		connected.Store(true)
	}, ConnectDone: func(_, _ string, err error) {
		if err == nil {
			connected.Store(true)
		}
	}}
	req, err := http.NewRequestWithContext(httptrace.WithClientTrace(ctx, trace), http.MethodHead, address, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := c.once.RoundTrip(req)
	switch {
	case err == nil:
		return resp.Body.Close()
	case ctx.Err() != nil && connected.Load():
		return nil // slow, and not away
	case ctx.Err() != nil:
		return unreachable(u.Host, fmt.Errorf("no connection within %s", connectLimit))
	}
	if p, ok := errors.AsType[*step.Problem](explain(err, address, u.Host)); ok {
		p.Text = strings.TrimPrefix(p.Text, address+": ") // the text names the server too
		return p
	}
	return unreachable(u.Host, err)
}

func unreachable(host string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &step.Problem{
		Name: "unreachable", Firm: true, Text: host + " cannot be reached: " + err.Error(), Remedy: reachRemedy,
	}
}

const reachRemedy = "check the address, or name a mirror or a proxy (HTTPS_PROXY)"
