// Package docker is the only door to a Docker engine, of this host or of another
// machine: its images, the containers of ours that serve this host, and the
// machines of a fleet, which are containers too.
package docker

import (
	"context"
	"fmt"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/system"
	"github.com/moby/moby/client"
)

// Engine is one Docker engine.
type Engine struct {
	*client.Client
	Address string // "unix:///run/docker.sock"
}

// Open returns the engine behind a socket of this host,
// "/run/docker.sock". It does not connect yet.
func Open(socket string) (*Engine, error) {
	return Choice{Address: "unix://" + socket}.Open()
}

// Answers returns nil once the engine answers.
func (d *Engine) Answers(ctx context.Context) error {
	_, err := d.Ping(ctx, client.PingOptions{})
	return err
}

// Facts returns what the engine says of itself.
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

// doing says in an error what was to be done, and to what.
func doing(verb, name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s %s: %w", verb, name, err)
	}
	return nil
}
