package kube

import (
	"net/http"
	"net/http/httptrace"
	"sync"

	"k8s.io/client-go/rest"
)

// clients contains the HTTP client for each client certificate, so that requests share a connection: a run
// makes a hundred of them, most while the API server starts. client-go keeps no transport of a
// configuration with a Proxy.
// https://github.com/kubernetes/client-go/blob/v0.37.2/transport/cache.go#L241-L244
var clients sync.Map // certificate → *http.Client

// certificate is what distinguishes the clients.
type certificate struct {
	file, cert, key, authority string // file: from which client-go reads it again
	server, proxy              string
}

// clientFor returns the client for a configuration. One with a token has a client of its own, because
// anybody can send a control plane tokens to be reviewed.
func clientFor(config *rest.Config) (*http.Client, error) {
	if config.BearerToken != "" || config.Proxy == nil || config.CertFile == "" && len(config.CertData) == 0 {
		return rest.HTTPClientFor(config)
	}
	as := certificate{
		config.CertFile, string(config.CertData), string(config.KeyData), string(config.CAData),
		config.ServerName, proxyOf(config),
	}
	if client, ok := clients.Load(as); ok {
		return client.(*http.Client), nil
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	client.Transport = &gate{next: client.Transport, connecting: make(chan struct{}, 1)}
	kept, _ := clients.LoadOrStore(as, client)
	return kept.(*http.Client), nil
}

// proxyOf returns the proxy on the way to the API server, "" without one.
func proxyOf(config *rest.Config) string {
	request, err := http.NewRequest(http.MethodGet, config.Host, nil)
	if err != nil {
		return ""
	}
	if proxy, err := config.Proxy(request); err == nil && proxy != nil {
		return proxy.String()
	}
	return ""
}

// gate lets one request connect at a time. Requests that begin together would otherwise each make a
// connection before they know that HTTP/2 needs one.
type gate struct {
	next       http.RoundTripper
	connecting chan struct{}
}

// RoundTrip waits until no other request connects.
func (g *gate) RoundTrip(r *http.Request) (*http.Response, error) {
	select {
	case g.connecting <- struct{}{}:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	leave := sync.OnceFunc(func() { <-g.connecting })
	defer leave()
	trace := &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { leave() }}
	return g.next.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
}
