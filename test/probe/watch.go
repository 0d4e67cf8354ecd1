package main

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"regexp"
	"sync"
	"time"
)

// kubeconfig opens the API server from its first answer on.
const kubeconfig = "/etc/kubernetes/super-admin.conf"

// watch tells, one line each, at which nanosecond a new cluster first did what
// its users wait for. Nodes and pods are watched, so that it costs next to
// nothing.
func watch(master, worker string) error {
	var all sync.WaitGroup
	told := func(what string) { fmt.Println(time.Now().UnixNano(), what) }
	all.Go(func() {
		again(answers)
		told("API answering")
		all.Go(func() { again(nodeReady(master)); told("node Ready") })
		all.Go(func() { again(nodeReady(worker)); told("worker Ready") })
		all.Go(func() { again(podAnswers); told("first packet from the worker") })
		all.Go(func() { again(within(longSilence, resolves)); told("DNS Ready") })
	})
	all.Wait()
	return nil
}

// longSilence is the time after which the watch no longer waits for the DNS: a figure of
// this length means that it took longer.
const longSilence = 3 * time.Minute

// within returns a try that succeeds once limit is over.
func within(limit time.Duration, try func(context.Context) error) func(context.Context) error {
	end := time.Now().Add(limit)
	return func(ctx context.Context) error {
		if time.Now().After(end) {
			return nil
		}
		return try(ctx)
	}
}

// again tries until try succeeds.
func again(try func(context.Context) error) {
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
		err := try(ctx)
		cancel()
		if err == nil {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// answers is nil once anything comes back over TLS.
func answers(ctx context.Context) error {
	response, err := api(ctx, "/livez")
	if response != nil {
		response.Body.Close()
	}
	return err
}

func resolves(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	dns := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp", "10.96.0.10:53")
	}}
	_, err := dns.LookupHost(ctx, "kubernetes.default.svc.cluster.local.")
	return err
}

type object struct {
	Object struct {
		Status struct {
			PodIP      string
			Conditions []struct{ Type, Status string }
		}
	}
}

func nodeReady(name string) func(context.Context) error {
	return func(ctx context.Context) error {
		return until(ctx, "/api/v1/nodes?watch=true&fieldSelector=metadata.name%3D"+name, func(o object) bool {
			for _, c := range o.Object.Status.Conditions {
				if c.Type == "Ready" && c.Status == "True" {
					return true
				}
			}
			return false
		})
	}
}

// podAnswers asks the pod of the worker as soon as its address is known.
func podAnswers(ctx context.Context) error {
	var ip string
	err := until(ctx, "/api/v1/pods?watch=true&labelSelector=app%3Dbench", func(o object) bool {
		ip = o.Object.Status.PodIP
		return ip != ""
	})
	if err != nil {
		return err
	}
	again(func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
		defer cancel()
		var n counter
		return get(ctx, "http://"+ip+":8080/", &n)
	})
	return nil
}

// until reads a watch until an object is as wanted.
func until(ctx context.Context, path string, wanted func(object) bool) error {
	response, err := api(ctx, path)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return errors.New(response.Status)
	}
	for events := json.NewDecoder(response.Body); ; {
		var o object
		if err := events.Decode(&o); err != nil {
			return err
		}
		if wanted(o) {
			return nil
		}
	}
}

func api(ctx context.Context, path string) (*http.Response, error) {
	data, err := os.ReadFile(kubeconfig)
	if err != nil {
		return nil, err
	}
	cert, err := tls.X509KeyPair(field(data, "client-certificate-data"), field(data, "client-key-data"))
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, string(server.FindSubmatch(data)[1])+path, nil)
	if err != nil {
		return nil, err
	}
	// Whose certificate it is does not matter to a clock.
	transport := &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{
			Certificates: []tls.Certificate{cert}, InsecureSkipVerify: true,
		},
	}
	return transport.RoundTrip(request)
}

var server = regexp.MustCompile(`server: "?([^"\s]+)`)

func field(kubeconfig []byte, name string) []byte {
	found := regexp.MustCompile(name + `: "?([^"\s]+)`).FindSubmatch(kubeconfig)
	if found == nil {
		return nil
	}
	decoded, _ := base64.StdEncoding.DecodeString(string(found[1])) // what is not PEM is told by its reader
	return decoded
}
