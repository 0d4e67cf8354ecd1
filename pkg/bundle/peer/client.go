package peer

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
)

const (
	dialLimit  = 5 * time.Second
	stallLimit = time.Minute
	// longestReason is the length of an error of a server in bytes.
	longestReason = 1 << 10
)

// Fetcher fetches the part of a bundle that this host needs.
type Fetcher struct {
	Servers func(context.Context) []string // host:port of each control plane
	// Connect returns the authorities of the servers and the credential of this host: a token,
	// or a client certificate in the configuration.
	Connect          func(context.Context) (config *tls.Config, token string, err error)
	Kubernetes, Arch string
	Options          []bundle.Option // that a bundle must meet
}

// Offer is a bundle that a control plane has for this host.
type Offer struct {
	Head   *bundle.Bundle // its blobs cannot be read
	server string
	client *http.Client
	token  string
	size   int64
	asked  Fetcher
}

// refusal is the answer of a server that it does not have what was asked for.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

// transient reports whether a later request may succeed.
func transient(err error) bool {
	refused, ok := errors.AsType[*refusal](err)
	return ok && refused.status >= http.StatusInternalServerError || link.IsTransient(err)
}

// ErrNone means that no control plane offers a bundle for this host.
var ErrNone = errors.New("no control plane has them")

// FirstOffer asks all control planes, and returns the first offer.
func (c Fetcher) FirstOffer(ctx context.Context) (*Offer, error) {
	config, token, err := c.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	servers := c.Servers(ctx)
	type answer struct {
		offer *Offer
		err   error
	}
	answers := make(chan answer, len(servers))
	for _, server := range servers {
		go func() {
			offer := &Offer{server: server, token: token, asked: c, client: &http.Client{Transport: transport(config)}}
			err := offer.ask(ctx)
			answers <- answer{offer, err}
		}()
	}
	none := &noneError{}
	for range servers {
		a := <-answers
		if a.err == nil {
			return a.offer, nil
		}
		none.reasons = append(none.reasons, fmt.Errorf("%s: %w", a.offer.server, a.err))
	}
	return nil, none
}

// noneError lists the reason of each control plane.
type noneError struct{ reasons []error }

func (n *noneError) Error() string {
	var texts []string
	for _, reason := range n.reasons {
		texts = append(texts, reason.Error())
	}
	slices.Sort(texts)
	return ErrNone.Error() + ": " + strings.Join(texts, "; ")
}

func (n *noneError) Unwrap() []error { return append([]error{ErrNone}, n.reasons...) }

// transport uses no proxy: the token goes to the control planes and nowhere else.
func transport(config *tls.Config) http.RoundTripper {
	return link.IdleTimeout{Limit: stallLimit, Next: link.HTTPSOnly{Next: &http.Transport{
		TLSClientConfig: config, TLSHandshakeTimeout: dialLimit, DisableKeepAlives: true,
		DialContext: (&net.Dialer{Timeout: dialLimit}).DialContext,
	}}}
}

// ask reads the head of the bundle.
func (o *Offer) ask(ctx context.Context) error {
	response, err := o.get(ctx, nil)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if o.size = response.ContentLength; o.size <= 0 {
		return errors.New("it does not state the size of its bundle")
	}
	o.Head, err = bundle.OpenHead("of "+o.server, response.Body, o.size, o.asked.Options...)
	if err != nil {
		return err
	}
	return lacks(o.Head, o.asked.Kubernetes, o.asked.Arch)
}

// get requests the bundle or a section of this very bundle.
func (o *Offer) get(ctx context.Context, part *bundle.Section) (*http.Response, error) {
	query := url.Values{"kubernetes": {o.asked.Kubernetes}, "arch": {o.asked.Arch}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+o.server+bundlePath+"?"+query.Encode(),
		http.NoBody)
	if err != nil {
		return nil, err
	}
	if o.token != "" {
		request.Header.Set("Authorization", "Bearer "+o.token)
	}
	want := http.StatusOK
	if part != nil {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-%d", part.Offset, part.End()-1))
		request.Header.Set("If-Match", tag(o.Head))
		want = http.StatusPartialContent
	}
	response, err := o.client.Do(request)
	if err != nil {
		return nil, withoutURL(err)
	}
	if response.StatusCode != want {
		defer response.Body.Close()
		return nil, refused(response)
	}
	return response, nil
}

func withoutURL(err error) error {
	if request, ok := errors.AsType[*url.Error](err); ok {
		return request.Err
	}
	return err
}

func refused(response *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(response.Body, longestReason))
	reason := strings.TrimSpace(string(text))
	if response.StatusCode == http.StatusPreconditionFailed {
		reason = "it has another bundle than before; run the same command again"
	}
	if reason == "" {
		reason = "it answers " + response.Status
	}
	return &refusal{response.StatusCode, reason}
}
