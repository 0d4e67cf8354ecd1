// Package apiserver reaches the API server of a cluster from this machine, by
// the front that leads to any control plane that is ready.
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/links"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FrontName returns the name of the container in front of the control planes.
// It contains a dot, which no host name does.
func FrontName(cluster string) string { return cluster + ".api" }

// URL returns the URL at which this machine reaches the API server of a
// cluster, whichever control planes run.
func URL(ctx context.Context, options session.Options) (string, error) {
	return session.Get(ctx, options, session.Scope{}, func(s *session.Session, _ topology.State) (string, error) { return urlOf(ctx, s) })
}

// urlOf returns the front's own address if this machine has a route to the
// cluster's network. An engine in a virtual machine or on another machine has
// no such route. There, urlOf returns the published port.
func urlOf(ctx context.Context, s *session.Session) (string, error) {
	front, _, err := s.Cluster().Attached(ctx, FrontName(s.Name))
	if err != nil {
		return "", s.NoAnswer(err)
	}
	if !front.Running {
		return "", &step.Problem{Name: "front-off", Text: "container " + FrontName(s.Name) + ", which leads to the control planes, does not run",
			Remedy: "run `kube-bootstrap cluster up --name " + s.Name + "`"}
	}
	engine, err := s.Engine.MachineName(ctx)
	if err != nil {
		return "", err
	}
	if engine != "" {
		return publishedAt(engine, front)
	}
	routes, err := links.Routes()
	if err != nil {
		return "", fmt.Errorf("routes: %w", err)
	}
	if slices.ContainsFunc(routes, func(r links.Route) bool { return r.Dst.Bits() > 0 && r.Dst.Contains(front.Addr) }) {
		for inside := range front.Ports {
			return "https://" + netip.AddrPortFrom(front.Addr, inside).String(), nil
		}
	}
	return publishedAt("127.0.0.1", front)
}

func publishedAt(address string, front docker.Attached) (string, error) {
	for _, port := range front.Ports {
		return "https://" + net.JoinHostPort(address, strconv.Itoa(int(port))), nil
	}
	return "", errors.New("the container in front of the control planes publishes no port")
}
