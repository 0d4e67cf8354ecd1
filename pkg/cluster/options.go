// Package cluster creates, changes and removes clusters. kube-bootstrap on each node does the work
// there. The nodes that it creates are containers; all other commands work with any provider of nodes.
//
//	cmd -> cluster.Up ...  -> preflight -> remote    run kube-bootstrap on a node
//	    -> tools, suite                 -> apiserver the API of the cluster
//	    |                               -> session   locks, records
//	    |                                  -> provider  where the nodes are
//	    |                                  -> topology  desired and observed nodes
//	    -> containers/...                  create, start and stop nodes that are containers
package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/requirements"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/testhost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/topology"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ManifestFile is a file of this machine that the first control plane applies.
type ManifestFile struct {
	Path string // on this machine
	On   string // on the host
}

// Options describe a cluster. The zero value of a field stands for its default.
type Options struct {
	session.Selection
	topology.Request
	APIPort int  // port of the API server on its nodes
	Publish bool // publish APIPort on the engine's machine too; otherwise a free port

	Registry testhost.RegistrySettings // the nodes use it by MasterArgs and WorkerArgs
	Balanced []addresses.Range         // of an existing cluster, for Services of type LoadBalancer

	Retain        bool // keep what was created if something fails
	KeepImages    bool // Clean keeps the host images
	FirstSnapshot bool // save a snapshot when the cluster is up for the first time
	Recreate      bool // remove the cluster first, but not its snapshots
	Incomplete    bool // Up is called again, with more: until then it does not record that the cluster is up

	Made config.ClusterRecord // the settings, to be recorded with the cluster

	Kubernetes string          // version that the nodes get; "" for bare hosts
	Binary     string          // kube-bootstrap for the hosts: this program
	Bundle     string          // the bundle that the hosts load; "": they pull their images
	Components BuiltComponents // built from a checkout, instead of those in Bundle; none: those of the cluster
	Manifests  []ManifestFile
	MasterArgs []string // further arguments of `kube-bootstrap master`
	WorkerArgs []string // further arguments of `kube-bootstrap worker`
	LoadArgs   []string // further arguments of `kube-bootstrap offline bootstrap`
}

func (o Options) withDefaults() (Options, error) {
	var errs [2]error
	o.Selection, errs[0] = o.Selection.WithDefaults()
	o.ControlPlanes = cmp.Or(o.ControlPlanes, 1)
	o.APIPort = cmp.Or(o.APIPort, 6443)
	o.HostImage = cmp.Or(o.HostImage, "docker-28.5")
	if !o.Subnet.IsValid() {
		o.Subnet = topology.DefaultSubnet
	}
	if o.Binary == "" {
		o.Binary, errs[1] = os.Executable()
	}
	return o, errors.Join(append(errs[:], o.validate())...)
}

func (o Options) validate() error {
	errs := o.Validate(o.Name)
	images := map[string]bool{o.HostImage: true}
	for _, n := range o.Nodes {
		images[cmp.Or(n.HostImage, o.HostImage)] = true
	}
	for image := range images {
		errs = append(errs, testhost.BadVariant(image))
	}
	return errors.Join(append(errs, BadBundle(o.Bundle, len(o.Hosts) > 0))...)
}

// BadBundle returns a problem if the nodes cannot load the bundle. They share one bundle, so it must
// not need a base; bare hosts load none.
func BadBundle(path string, bare bool) error {
	if path == "" {
		return nil
	}
	b, err := bundle.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s does not exist", path) // the remedy is below
	}
	if err != nil {
		return &step.Problem{
			Name: "bundle", Text: fmt.Sprintf("--bundle: %v", err),
			Remedy: "make it with `kube-bootstrap offline build` or `offline pull`",
		}
	}
	defer b.Close()
	if b.Manifest.Base == nil || bare {
		return nil
	}
	return &step.Problem{
		Name: "bundle", Text: fmt.Sprintf("--bundle: %s needs the bundle of Kubernetes %s as its base, and the nodes "+
			"of a cluster load one bundle", path, b.Manifest.Base.Kubernetes),
		Remedy: "give a bundle that was made without --base",
	}
}

func (o Options) record() (session.Record, error) {
	program, err := remote.Sum(o.Binary)
	return session.Record{
		Format: session.RecordFormat, Kubernetes: o.Kubernetes, Program: program, Settings: o.Made,
		HostImage: o.HostImage, APIPort: o.APIPort, Nodes: o.Specs(),
	}, err
}

// setup returns what the hosts of a topology have in common.
func (o Options) setup(c containers.Cluster, t topology.Topology) testhost.Setup {
	return testhost.Setup{
		Cluster: c, Topology: t, Subnet: t.Subnet(), Files: o.sharedFiles(), Binary: o.Binary,
		APIPort: o.APIPort, Publish: o.Publish, Registry: o.Registry, Facts: new(machines.EngineHost),
	}
}

// opened is a cluster that a command has opened, with the completed options.
type opened struct {
	cluster containers.Cluster
	options Options
	state   topology.State
}

// open completes the options and opens the cluster. The caller closes it.
func open(ctx context.Context, options Options, scope session.Requirements) (opened, error) {
	options, err := options.withDefaults()
	if err != nil {
		return opened{}, err
	}
	c, state, err := containers.Begin(ctx, options.Selection, scope)
	return opened{c, options, state}, err
}

func (o opened) close() { _ = o.cluster.Session.Close() }

// Preflight returns all problems that would stop Up, and changes nothing.
func Preflight(ctx context.Context, options Options) error {
	o, err := open(ctx, options, session.Requirements{})
	if err != nil {
		return err
	}
	defer o.close()
	recreate, err := recreates(ctx, o.cluster.Session, o.options)
	if err != nil {
		return o.cluster.Session.Provider.NoAnswer(err)
	}
	nodes := o.options.Topology(o.cluster.Name, topology.State{})
	return requirements.Check(ctx, o.options.setup(o.cluster, nodes), recreate)
}
