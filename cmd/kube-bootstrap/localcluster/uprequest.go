package localcluster

import (
	"context"
	"errors"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

// upRequest is a checked request for `cluster up`.
type upRequest struct {
	settings   config.Config
	options    cluster.Options
	checkout   string // Kubernetes checkout to build from; "" for none
	keptBundle string // bundle that the hosts loaded; "" if this machine does not have it
}

// checkRequest completes the given settings with the recorded ones of an existing
// cluster, and returns all problems of the request.
func checkRequest(ctx context.Context, con *console.Console, cfg config.Config, origins config.Origins, flags upFlags) (upRequest, error) {
	said, err := toClusterOptions(cfg, origins)
	if err != nil {
		return upRequest{}, err
	}
	if err := errors.Join(checkManifests(said.Manifests), checkSaid(cfg, origins)); err != nil {
		return upRequest{}, exit.Firm(err)
	}
	there, err := cluster.Recorded(ctx, said.Options)
	if err != nil {
		return upRequest{}, exit.Firm(err)
	}
	if there == nil {
		there = &session.Record{}
	}
	cfg, other := cfg.WithMade(there.Settings, origins)
	cfg = withBalancedAddresses(cfg, origins)
	if errs := cfg.Validate(""); len(errs) > 0 {
		return upRequest{}, exit.Usage(origins.Tell(errs))
	}
	nodes, removed := topology.Resolve(cfg.Name, there.Nodes, askedNodes(cfg, origins))
	if !flags.recreate {
		if err := errors.Join(append(removed, preflight.Differs(cfg.Name, other))...); err != nil {
			return upRequest{}, exit.Firm(err)
		}
	}
	r, err := completed(cfg, origins, flags, there)
	if err != nil {
		return r, err
	}
	if len(there.Nodes) > 0 {
		r.options.Nodes = nodes
	}
	balanced := preflight.Balanced(r.options.Topology(r.options.Name, topology.State{}), cfg.LoadBalancerRanges())
	if err := errors.Join(checkManifests(r.options.Manifests), balanced, cluster.Preflight(ctx, r.options)); err != nil {
		return r, exit.Firm(err)
	}
	return r, con.Confirm(ctx, *flags.yes || !flags.recreate, func(ctx context.Context) ([]string, error) {
		return cluster.RecreateLosses(ctx, r.options)
	})
}

// checkSaid checks a given checkout before the engine is contacted.
func checkSaid(cfg config.Config, origins config.Origins) error {
	var v image.Versions
	if origins.Said("kubernetesVersion") != "" {
		v.Kubernetes = cfg.KubernetesVersion
	}
	_, err := bundles.Checkout(cfg, v)
	return err
}

func askedNodes(cfg config.Config, origins config.Origins) topology.Asked {
	return topology.Asked{
		Masters: cfg.Masters, ByMasters: origins.Said("masters"),
		Workers: cfg.Workers, ByWorkers: origins.Said("workers"),
		Nodes: nodeSpecs(cfg.Nodes), ByNodes: origins.Said("nodes"),
	}
}

// completed turns complete settings into options.
func completed(cfg config.Config, origins config.Origins, flags upFlags, there *session.Record) (upRequest, error) {
	v, err := bundles.Versions(cfg)
	if err != nil {
		return upRequest{}, err
	}
	made := cfg.Made(origins)
	r := upRequest{settings: cfg}
	if exists := len(there.Nodes) > 0; exists && !flags.recreate && there.Phase == "" {
		cfg, r.keptBundle = cfg.Remembered(origins), there.Bundle
	}
	if r.checkout, err = bundles.Checkout(cfg, v); err != nil {
		return r, exit.Firm(err)
	}
	if r.options, err = toClusterOptions(cfg, origins); err != nil {
		return r, err
	}
	r.options.Made, r.options.Kubernetes = made, v.Kubernetes
	r.options.Retain, r.options.FirstSnapshot, r.options.Recreate = flags.retain, flags.snapshot, flags.recreate
	return r, nil
}
