package cluster

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Moves are the steps by which a node comes and goes in the eyes of the API
// server.
type Moves struct {
	Drain, Forget, Uncordon func(api kube.Connect, node string) step.Step
}

// onNodes does something to nodes of a fleet that is there, one run at a time.
func onNodes(ctx context.Context, options Options, emit func(Event), do func(*fleet, []docker.FoundMachine) error) error {
	f, err := open(options, emit)
	if err != nil {
		return err
	}
	defer f.docker.Close()
	found, err := f.found(ctx)
	if err != nil {
		return f.noAnswer(err)
	}
	if len(found) == 0 {
		return f.noHosts(ctx)
	}
	release, err := f.lock(ctx)
	if err != nil {
		return err
	}
	defer release()
	f.adopt(found)
	if f.Subnet, err = f.ownSubnet(ctx); err != nil {
		return err
	}
	if err := f.takeOver(ctx); err != nil {
		return err
	}
	if err := f.findPrograms(ctx); err != nil {
		return err
	}
	return do(f, found)
}

// takeOver makes new hosts use the recorded host image and API port of the
// cluster.
func (f *fleet) takeOver(ctx context.Context) error {
	r, err := f.noted(ctx)
	if err == nil && r != nil {
		f.HostImage, f.APIPort = cmp.Or(r.HostImage, f.HostImage), cmp.Or(r.APIPort, f.APIPort)
	}
	return err
}

// adopt takes the nodes as they are, whatever the options say.
func (f *fleet) adopt(found []docker.FoundMachine) {
	f.Nodes, f.Hosts = nil, nil
	for _, m := range found {
		f.Nodes = append(f.Nodes, specOf(m))
	}
	f.all = f.settle(found)
}

func (f *fleet) byName(name string) member {
	for _, m := range f.members() {
		if m.name == name {
			return m
		}
	}
	return member{}
}

// pick finds a node by its own name, or by that which the cluster gave it.
func (f *fleet) pick(name string) (member, error) {
	if m := f.byName(name); m.name != "" {
		return m, nil
	}
	if m := f.byName(f.Name + "-" + name); m.name != "" {
		return m, nil
	}
	var all []string
	for _, m := range f.members() {
		all = append(all, m.name)
	}
	return member{}, &step.Problem{Name: "node-missing", Text: fmt.Sprintf("cluster %s has no node %s", f.Name, name),
		Remedy: "use one of " + strings.Join(all, ", ")}
}

// pickRunning is pick for a node that must be running.
func (f *fleet) pickRunning(name string, found []docker.FoundMachine) (member, error) {
	m, err := f.pick(name)
	if err == nil && !running(found, m) {
		err = &step.Problem{Name: "node-off", Text: "node " + m.name + " does not run",
			Remedy: "run `kube-bootstrap node start " + m.name + " --cluster " + f.Name + "`"}
	}
	return m, err
}

func running(found []docker.FoundMachine, m member) bool {
	return slices.ContainsFunc(found, func(is docker.FoundMachine) bool { return is.Name == m.name && is.State == "running" })
}

// api reaches the API server by the first control plane that runs, but for one
// that is about to go.
func (f *fleet) api(ctx context.Context, leaves member) kube.Connect {
	return func() (*rest.Config, error) {
		data, err := f.kubeconfig(ctx, leaves.name)
		if err != nil {
			return nil, err
		}
		config, err := clientcmd.RESTConfigFromKubeConfig(data)
		if err == nil {
			config.QPS = -1 // a few requests, once
		}
		return config, err
	}
}

// lock keeps a second run on the same cluster away.
func (f *fleet) lock(ctx context.Context) (func(), error) { return f.lockFor(ctx, "cluster") }

// lockFor keeps a second run of a kind away, and no other.
func (f *fleet) lockFor(ctx context.Context, kind string) (func(), error) {
	if err := os.MkdirAll(f.CacheDir, 0o755); err != nil {
		return nil, err
	}
	release, err := host.Lock(ctx, filepath.Join(f.CacheDir, "."+kind+"-"+f.Name+".lock"))
	if err != nil {
		return nil, fmt.Errorf("cluster %s: %w", f.Name, err)
	}
	return release, nil
}
