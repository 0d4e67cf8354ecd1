package localcluster

import (
	"cmp"
	"context"
	"errors"
	"maps"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/bundles"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
)

type upRequest struct {
	settings config.Config
	options  cluster.Options
	// withoutAddons creates the cluster before the images of its addons are built; nil for a cluster
	// that exists, has no addons, or is built from a checkout.
	withoutAddons *cluster.Options

	checkout   string // Kubernetes checkout to build from; "" for none
	keptBundle string // bundle that the hosts loaded; "" if this machine does not have it
	release    func() // ends the reservation of the subnet
}

// checkRequest completes the settings with the recorded ones, and returns all problems.
func checkRequest(
	ctx context.Context, con *console.Console, cfg config.Config, origins config.Origins, flags upFlags,
) (r upRequest, err error) {
	there, err := recorded(ctx, cfg, origins)
	if err != nil {
		return upRequest{}, err
	}
	cfg, other, err := cfg.WithRecord(there.Settings, origins)
	if err != nil {
		return upRequest{}, exit.Firm(err)
	}
	release := func() {}
	if there.Settings.Value("dindSubnet") == "" {
		if cfg, release, err = withFreeSubnet(ctx, cfg, origins); err != nil {
			return upRequest{}, err
		}
	}
	if r, err = checkNodes(ctx, cfg, origins, flags, there, other); err == nil {
		err = con.Confirm(ctx, *flags.yes || !flags.recreate, func(ctx context.Context) ([]string, error) {
			return cluster.RecreateLosses(ctx, r.options)
		})
	}
	if err != nil {
		release()
	}
	r.release = release
	return r, err
}

// recorded returns the record of the cluster, which is empty for a new one.
func recorded(ctx context.Context, cfg config.Config, origins config.Origins) (*session.Record, error) {
	said, err := toClusterOptions(cfg, origins)
	if err != nil {
		return nil, err
	}
	if err := errors.Join(checkManifests(said.Manifests), checkSaid(cfg, origins)); err != nil {
		return nil, exit.Firm(err)
	}
	there, err := cluster.Recorded(ctx, said.Selection)
	return cmp.Or(there, &session.Record{}), exit.Firm(err)
}

// checkNodes compares the completed settings with what exists, and checks what the nodes need.
func checkNodes(
	ctx context.Context, cfg config.Config, origins config.Origins, flags upFlags, there *session.Record,
	other []config.Difference,
) (upRequest, error) {
	cfg = withBalancedAddresses(cfg, origins)
	if errs := cfg.Validate(""); len(errs) > 0 {
		return upRequest{}, exit.Usage(origins.Tell(errs))
	}
	nodes, removed := topology.Resolve(cfg.Name, there.Nodes, nodesOf(cfg), origins.Said)
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
	} else if err := checkDownloads(ctx, cfg); err != nil {
		return r, exit.Firm(err)
	}
	balanced := requirements.Balanced(r.options.Topology(r.options.Name, topology.State{}), cfg.LoadBalancerAddresses)
	return r, exit.Firm(errors.Join(checkManifests(r.options.Manifests), balanced, cluster.Preflight(ctx, r.options)))
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

func completed(cfg config.Config, origins config.Origins, flags upFlags, there *session.Record) (upRequest, error) {
	v, err := bundles.Versions(cfg)
	if err != nil {
		return upRequest{}, err
	}
	made := cfg.Record(origins)
	r := upRequest{settings: cfg}
	if exists := len(there.Nodes) > 0; exists && !flags.recreate && there.Phase == "" {
		cfg = cfg.WithoutRecordedFiles(origins)
		if bundles.HasAddons(there.Bundle, cfg.Addons) {
			r.keptBundle = there.Bundle
		}
	}
	if r.checkout, err = bundles.Checkout(cfg, v); err != nil {
		return r, exit.Firm(err)
	}
	if r.options, err = toClusterOptions(cfg, origins); err != nil {
		return r, err
	}
	r.options.Made, r.options.Kubernetes = made, v.Kubernetes
	r.options.Retain, r.options.FirstSnapshot, r.options.Recreate = flags.retain, flags.snapshot, flags.recreate
	if len(there.Nodes) == 0 && len(cfg.Addons) > 0 && r.checkout == "" {
		r.withoutAddons, err = withoutAddons(r.options, cfg, origins)
	}
	return r, err
}

// withoutAddons returns the options of a cluster whose hosts get no addons yet.
func withoutAddons(o cluster.Options, cfg config.Config, origins config.Origins) (*cluster.Options, error) {
	fields := []string{"addons", "loadBalancerAddresses"}
	origins = maps.Clone(origins)
	for _, field := range fields {
		delete(origins, field)
	}
	bare, err := toClusterOptions(cfg.Reset(fields...), origins)
	o.MasterArgs, o.Manifests, o.Incomplete = bare.MasterArgs, bare.Manifests, true
	return &o, err
}
