package registries

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// officialNames are the names of the servers that a pull asks.
var officialNames = []string{"registry.k8s.io", "ghcr.io", "index.docker.io", "quay.io", "dl.k8s.io", "github.com"}

// StartInternet serves the official registries and download sites under their own names, at port
// 443 of an address of this machine.
func StartInternet(t *testing.T, o *Official, address string) *Sites {
	t.Helper()
	s := newSites()
	images, files := o.images(), o.downloads()
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next := images
		if r.Host == "dl.k8s.io" || r.Host == "github.com" {
			next = files
		}
		s.serve(next, w, r)
	}))
	must.NoError(t, s.Listener.Close())
	var err error
	s.Listener, err = net.Listen("tcp", address+":443")
	must.NoError(t, err)
	s.certify(t, officialNames...)
	s.start(t)
	return s
}

// images serves the images of the registry, which are below official/ there, without a login.
func (o *Official) images() http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: o.Registry})
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte(User+":"+Password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", login)
		if below, found := strings.CutPrefix(r.URL.Path, "/v2/"); found && below != "" {
			r.URL.Path = "/v2/official/" + below
		}
		proxy.ServeHTTP(w, r)
	})
}

// downloads serves the files of both download sites.
func (o *Official) downloads() http.Handler {
	files := http.FileServer(http.Dir(o.Files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/containernetworking/plugins/releases/download")
		files.ServeHTTP(w, r)
	})
}

// Trust has a host accept the certificate of the sites.
func (s *Sites) Trust(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Put(t, s.CAFile, "/root/internet.crt")
	m.Sh(t, "cat /root/internet.crt >>/etc/ssl/certs/ca-certificates.crt && rm /root/internet.crt")
}

// Lead adds the official names to /etc/hosts of a host, with the address of the sites. Docker
// replaces this file whenever the host boots.
func (s *Sites) Lead(t *testing.T, m hosts.Machine) {
	t.Helper()
	address, _, err := net.SplitHostPort(s.Host())
	must.NoError(t, err)
	m.Sh(t, "echo "+address+" "+strings.Join(officialNames, " ")+" >>/etc/hosts")
}
