// Package docker is the only package that calls a Docker engine, local or
// remote: images, containers of kube-bootstrap, and nodes that are
// containers.
package docker

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"strings"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Engine is one Docker engine.
type Engine struct {
	*client.Client
	Address string // "unix:///run/docker.sock"
}

// Open returns the engine behind a socket of this host, "/run/docker.sock". It
// does not connect yet.
func Open(socket string) *Engine {
	address := "unix://" + socket
	api, err := client.New(client.WithHost(address))
	if err != nil {
		panic(err) // impossible: the path of a socket is short
	}
	return &Engine{api, address}
}

// Answers returns nil once the engine answers. A refused connection is a
// certain result; every other error means that the state is unknown.
func (d *Engine) Answers(ctx context.Context) error {
	if socket, ok := strings.CutPrefix(d.Address, "unix://"); ok {
		conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
		if err != nil {
			return step.Serves(err)
		}
		conn.Close()
	}
	_, err := d.Ping(ctx, client.PingOptions{})
	return step.NoAnswer(err)
}

// absent reports whether no engine runs: it was never started, or it was
// stopped cleanly. Its containers and images then cannot be in use.
func absent(err error) bool {
	return client.IsErrConnectionFailed(err) && errors.Is(err, fs.ErrNotExist)
}

// noAnswer marks an error of a request that the engine did not answer.
func noAnswer(err error) error {
	if client.IsErrConnectionFailed(err) || errors.Is(err, context.DeadlineExceeded) {
		return step.NoAnswer(err)
	}
	return err
}

// Facts returns the engine's description of itself.
func (d *Engine) Facts(ctx context.Context) (system.Info, error) {
	info, err := d.Info(ctx, client.InfoOptions{})
	return info.Info, err
}

// Version returns the engine's version and the newest API version it speaks.
func (d *Engine) Version(ctx context.Context) (version, api string, err error) {
	v, err := d.ServerVersion(ctx, client.ServerVersionOptions{})
	return v.Version, v.APIVersion, err
}

func gone(err error) error {
	if errdefs.IsNotFound(err) {
		return nil
	}
	return err
}

// doing wraps an error with the action and its object.
func doing(verb, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	return nil
}
