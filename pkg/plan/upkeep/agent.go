package upkeep

import (
	"context"
	"fmt"
	"sync"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/agent"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/balancer"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bootstrapdocker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/initsystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/process"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Agent is the agent of this host. Its parts run independently of one
// another, and each retries after an error.
type Agent struct {
	Lock agent.TakeLock // held during repairs
	Log  func(string)

	in      *agent.Inbox
	outages *outages
	hosts   agent.Signal // the addresses of hosts or control planes changed
}

// Run runs the agent until ctx ends.
func (r Agent) Run(ctx context.Context) error {
	r.in, r.outages, r.hosts = agent.NewInbox(), &outages{}, agent.NewSignal()
	if err := r.makeOverlay(); err != nil {
		r.failed("make the link of the overlay")(err)
	}
	saved, err := local.ReadSaved(host.Files{})
	parts := map[string]func(context.Context) error{
		"balance":                     r.balance,
		"repair":                      r.repair,
		"refresh the filter of hosts": r.refreshHostFilter,
		"finish restarts of Docker":   r.onHost(r.finishRestarts),
	}
	// A run that repairs an unreadable role restarts the agent.
	if err == nil && saved.Role == local.ControlPlane {
		for name, a := range requestHandlers {
			parts[name] = whenOpen(r.onHost(func(ctx context.Context, h *local.Host) error { return r.handle(ctx, h, name, a) }))
		}
		parts["serve etcd to workers"] = r.onHost(serveEtcd)
		parts["keep room in etcd"] = r.onHost(r.keepRoom)
		parts["serve the bundle"] = whenOpen(r.onHost(r.serveBundle))
		parts["refuse removed nodes"] = whenOpen(r.onHost(r.refuse))
		parts["watch the rotation"] = whenOpen(r.report(renewal.State.Watch))
		parts["watch the nodes"] = whenOpen(r.onHost(r.watchNodes))
	}
	if err == nil && saved.Role == local.Worker {
		parts["watch the rotation"] = r.report(renewal.WorkerState.WatchTrust)
	}
	var all sync.WaitGroup
	for name, part := range parts {
		all.Go(func() { agent.Forever(ctx, part, r.failed(name)) })
	}
	if err := agent.Announce(host.Files{}); err != nil {
		return err
	}
	all.Go(func() { agent.LimitGarbage(ctx) })
	all.Wait()
	return nil
}

func (r Agent) failed(part string) func(error) {
	return func(err error) { r.Log(fmt.Sprintf("%s: %v", part, err)) }
}

// makeOverlay creates the overlay link before the balancer starts: otherwise
// flanneld, which reaches etcd through the balancer, may create it first.
func (r Agent) makeOverlay() error {
	if !local.Complete(host.Files{}) {
		return nil
	}
	h, err := local.InForce(host.Files{})
	if err != nil || !h.ManagesNetwork() {
		return err
	}
	return flannel.EnsureVTEP(h.Config.FlannelBackend, h.Config.IPAddress)
}

// balance runs the balancer of this host until ctx ends. It reports changes of
// the list of control planes, and the end of a long outage.
func (r Agent) balance(ctx context.Context) error {
	s, err := balancer.ReadSettings(host.Files{})
	if err != nil {
		return err
	}
	credentials := etcd.Credentials{Files: host.Files{}, CA: s.EtcdCA, Cert: s.Cert, Key: s.Key}
	return balancer.Serve(ctx, host.Files{}, s, func(ctx context.Context, report func([]balancer.Backend)) error {
		return agent.WhileUnchanged(ctx, host.Files{}, func(ctx context.Context) error {
			client, err := credentials.Connect(ctx, "https://"+s.EtcdAddress())
			if err != nil {
				return err
			}
			defer client.Close()
			return etcd.WatchListed(ctx, client, func(list []etcd.ControlPlaneEntry) {
				var all []balancer.Backend
				for _, e := range list {
					all = append(all, balancer.Backend{IP: e.IP, Joining: e.Joining})
				}
				report(all)
				r.in.Put(agent.Cluster)
				r.hosts.Give()
			})
		}, s.EtcdCA)
	}, func(outage time.Duration) {
		if r.outages.note(time.Now(), outage) {
			go func() {
				if awaitTurn(ctx) == nil {
					r.in.Put(agent.API)
				}
			}()
		}
	})
}

// whenOpen returns the part that begins once the API server of this host has granted the agent
// its rights.
func whenOpen(part func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		open := func() (bool, error) { return host.Files{}.Exists(local.OpenFile), nil }
		if err := filesystem.Await(ctx, host.StateDir, open); err != nil {
			return err
		}
		return part(ctx)
	}
}

// onHost returns the part that does this with the settings in force.
func (r Agent) onHost(do func(context.Context, *local.Host) error) func(context.Context) error {
	return func(ctx context.Context) error {
		h, err := local.InForce(host.Files{})
		if err != nil {
			return err
		}
		return do(ctx, h)
	}
}

func (r Agent) handle(ctx context.Context, h *local.Host, part string, a requestHandler) error {
	asked, p := agent.NewSignal(), parts.InForce(h)
	go kube.Follow(ctx, requests(a.signer), func(e watch.Event) {
		if e.Type != watch.Modified {
			asked.Give()
		}
	})
	agent.Follow(ctx, asked, limited(h, func(ctx context.Context) error { return a.do(ctx, p) }), r.failed(part))
	return nil
}

// requestHandler is what a control plane does with the requests of a signer.
type requestHandler struct {
	signer string
	do     func(context.Context, parts.Parts) error
}

var requestHandlers = map[string]requestHandler{
	"approve": {certificatesv1.KubeletServingSignerName, func(ctx context.Context, p parts.Parts) error {
		return membership.Approve(ctx, p.Etcd, p.Network)
	}},
	"approve nodes": {certificatesv1.KubeAPIServerClientKubeletSignerName, func(ctx context.Context, p parts.Parts) error {
		return membership.ApproveNodes(ctx, p.Etcd)
	}},
	"issue": {join.FlannelSigner, func(ctx context.Context, p parts.Parts) error {
		return membership.Issue(ctx, p.Etcd, p.Network)
	}},
}

func requests(signer string) kube.Watch {
	return join.WatchRequests(kube.Kubeconfig(controlplane.AgentConf), signer)
}

func limited(h *local.Host, do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := step.Limited(h.Limited(ctx))
		defer cancel()
		return do(ctx)
	}
}

func (r Agent) repair(ctx context.Context) error {
	units := initsystem.Open()
	for _, e := range r.engines() {
		go e.Watch(ctx, units, r.in)
	}
	go agent.WatchKernel(ctx, r.in, r.failed("watch the kernel"))
	go agent.Forever(ctx, r.onHost(r.watchFiles), r.failed("watch files"))
	go agent.Forever(ctx, r.onHost(r.watchLeases), r.failed("watch the leases"))
	return agent.Repairer{Files: host.Files{}, Reconcilers: r.reconcilers, TakeLock: r.Lock, Log: r.Log}.Run(ctx, r.in)
}

func (r Agent) engines() []agent.WatchedEngine {
	dockerd := func(event agent.Events, unit, socket string) agent.WatchedEngine {
		return agent.WatchedEngine{Event: event, Unit: unit, Socket: socket, Follow: func(ctx context.Context, up, changed func()) error {
			return docker.Follow(ctx, socket, up, changed)
		}}
	}
	return []agent.WatchedEngine{
		dockerd(agent.MainDocker, "docker", local.MainSocket),
		dockerd(agent.BootstrapDocker, "docker-bootstrap", bootstrapdocker.Socket),
		{Event: agent.Containerd, Follow: func(ctx context.Context, up, changed func()) error {
			h, err := local.InForce(host.Files{})
			if err != nil {
				return err
			}
			return parts.Containerd(h).Follow(ctx, up, changed)
		}},
	}
}

// reconcilers returns no reconcilers while a run has not completed, or while a newer
// executable is installed that will replace this process.
func (r Agent) reconcilers() (agent.Groups, error) {
	if !local.Complete(host.Files{}) || !process.SelfInstalled(host.Files{}, local.Binary) {
		return nil, nil
	}
	h, err := local.InForce(host.Files{})
	if err != nil {
		return nil, err
	}
	return Reconcilers(h, r.outages), nil
}
