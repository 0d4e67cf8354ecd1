package kube

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// noProxy is the Proxy of a rest.Config that ignores HTTPS_PROXY: the proxy of downloads is
// not on the way to the hosts of the cluster.
func noProxy(*http.Request) (*url.URL, error) { return nil, nil }

// NoProxy returns the variable NO_PROXY for a program, such as kubectl, that uses a kubeconfig:
// the user's, and the host of the API server.
func NoProxy(kubeconfig string, variable func(string) string) (string, error) {
	config, err := Kubeconfig(kubeconfig)()
	if err != nil {
		return "", err
	}
	server, err := url.Parse(config.Host)
	if err != nil {
		return "", fmt.Errorf("kubeconfig %s: %w", kubeconfig, err)
	}
	others := cmp.Or(variable("NO_PROXY"), variable("no_proxy"))
	return "NO_PROXY=" + strings.TrimPrefix(others+","+server.Hostname(), ","), nil
}
