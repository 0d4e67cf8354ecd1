//go:build e2e && long

package e2e

import (
	"encoding/base64"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// officialNames are the names of the servers that a pull asks.
var officialNames = []string{"registry.k8s.io", "ghcr.io", "index.docker.io", "quay.io", "dl.k8s.io", "github.com"}

// startInternet serves the official registries and download sites under their own names, at port
// 443 of an address of this machine.
func startInternet(t *testing.T, o *official, address string) *sites {
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
func (o *official) images() http.Handler {
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: o.registry})
	login := "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Header.Set("Authorization", login)
		if below, found := strings.CutPrefix(r.URL.Path, "/v2/"); found && below != "" {
			r.URL.Path = "/v2/official/" + below
		}
		proxy.ServeHTTP(w, r)
	})
}

// downloads serves the files of both download sites.
func (o *official) downloads() http.Handler {
	files := http.FileServer(http.Dir(o.files))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.URL.Path = strings.TrimPrefix(r.URL.Path, "/containernetworking/plugins/releases/download")
		files.ServeHTTP(w, r)
	})
}

// trust has a host accept the certificate of the sites.
func (s *sites) trust(t *testing.T, m machine) {
	t.Helper()
	m.put(t, s.caFile, "/root/internet.crt")
	m.sh(t, "cat /root/internet.crt >>/etc/ssl/certs/ca-certificates.crt && rm /root/internet.crt")
}

// lead adds the official names to /etc/hosts of a host, with the address of the sites. Docker
// replaces this file whenever the host boots.
func (s *sites) lead(t *testing.T, m machine) {
	t.Helper()
	address, _, err := net.SplitHostPort(s.host())
	must.NoError(t, err)
	m.sh(t, "echo "+address+" "+strings.Join(officialNames, " ")+" >>/etc/hosts")
}
