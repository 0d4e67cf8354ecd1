package docker

import (
	"errors"
	"net/netip"
	"testing"
)

func TestPortErrorsAreToldApart(t *testing.T) {
	for text, want := range map[string]error{
		"Bind for 127.0.0.1:6443 failed: port is already allocated":                                          ErrPortTaken,
		"listen tcp4 127.0.0.1:6443: bind: address already in use":                                           ErrPortTaken,
		"Error starting userland proxy: listen tcp4 203.0.113.9:6443: bind: cannot assign requested address": ErrNoHostIP,
		"failed to create shim task: OCI runtime create failed":                                              nil,
	} {
		got := portError(errors.New(text))
		for _, kind := range []error{ErrPortTaken, ErrNoHostIP} {
			if errors.Is(got, kind) != errors.Is(want, kind) {
				t.Errorf("%s: %v", text, got)
			}
		}
	}
	if err := portError(nil); err != nil {
		t.Error(err)
	}
}

// TestPublishAddr: only where this machine cannot resolve the name of the engine's
// machine are all addresses used.
func TestPublishAddr(t *testing.T) {
	for address, want := range map[string]string{
		"unix:///run/docker.sock": "127.0.0.1", "tcp://127.0.0.1:2375": "127.0.0.1",
		"tcp://localhost:2375": "127.0.0.1",
		"tcp://192.0.2.7:2376": "192.0.2.7", "tcp://kube-bootstrap.invalid:2376": "0.0.0.0",
		"tcp://[2001:db8::1]:2376": "0.0.0.0",
	} {
		got, err := (&Engine{Address: address}).PublishAddr(t.Context())
		if err != nil || got.String() != want {
			t.Errorf("%s: got %s, %v; want %s", address, got, err, want)
		}
	}
}

// TestTheHashOfAContainerStays: another hash would replace the containers of existing clusters.
func TestTheHashOfAContainerStays(t *testing.T) {
	c := Container{
		Name: "k.api", Image: "front", Command: []string{"/front"}, Restart: "no",
		Mounts: []Mount{{Source: "/a", Target: "/b", ReadOnly: true}},
		On: Attachment{
			Cluster: "k", Network: "k", Addr: netip.MustParseAddr("10.192.0.2"), Ports: map[uint16]uint16{1: 2},
		},
	}
	if got, want := c.hash(), "a3869c26beec4075"; got != want {
		t.Errorf("hash %s, want %s", got, want)
	}
}
