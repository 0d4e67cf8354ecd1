package upkeep

import (
	"context"
	"fmt"
	"maps"
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
	Lock    agent.TakeLock // held during repairs
	Log     func(string)
	Version string // of kube-bootstrap

	settings *local.Current
	in       *agent.Inbox
	outages  *outages
	hosts    agent.Signal // the addresses of hosts or control planes changed
}

// Run runs the agent until ctx ends.
func (r Agent) Run(ctx context.Context) error {
	r.settings, r.in, r.outages, r.hosts = &local.Current{}, agent.NewInbox(), &outages{}, agent.NewSignal()
	if err := r.makeOverlay(); err != nil {
		r.failed("make the link of the overlay")(err)
	}
	saved, err := local.ReadSaved(host.Files{})
	tasks := map[string]func(context.Context) error{
		"balance":                     r.balance,
		"repair":                      r.repair,
		"refresh the filter of hosts": r.refreshHostFilter,
		"finish restarts of Docker":   r.with(r.finishRestarts),
	}
	// A run that repairs an unreadable role restarts the agent.
	if err == nil && saved.Role == local.ControlPlane {
		maps.Copy(tasks, r.ofControlPlane())
	}
	if err == nil && saved.Role == local.Worker {
		tasks["watch the rotation"] = r.report(renewal.WorkerState.WatchTrust)
	}
	var all sync.WaitGroup
	for name, task := range tasks {
		all.Go(func() { agent.Forever(ctx, task, r.failed(name)) })
	}
	if err := agent.Announce(host.Files{}); err != nil {
		return err
	}
	all.Go(func() { agent.LimitGarbage(ctx) })
	all.Wait()
	return nil
}

// ofControlPlane returns the tasks that only the agent of a control plane has.
func (r Agent) ofControlPlane() map[string]func(context.Context) error {
	tasks := map[string]func(context.Context) error{
		"serve etcd to workers":  r.with(serveEtcd),
		"keep room in etcd":      r.with(r.keepRoom),
		"leave a former cluster": r.leaveFormer,
		"serve the bundle":       whenOpen(r.with(r.serveBundle)),
		"refuse removed nodes":   whenOpen(r.with(r.refuse)),
		"watch the rotation":     whenOpen(r.report(renewal.State.Watch)),
		"watch the nodes":        whenOpen(r.with(r.watchNodes)),
		"back up":                whenOpen(r.backUp),
	}
	for name, a := range requestHandlers {
		tasks[name] = whenOpen(r.with(func(ctx context.Context, p parts.Parts) error {
			return r.handle(ctx, p.Etcd, p.Network, name, a)
		}))
	}
	return tasks
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
	h, err := r.settings.Host()
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

// with returns the task that does this with the parts of this host, by the settings in force.
func (r Agent) with(do func(context.Context, parts.Parts) error) func(context.Context) error {
	return func(ctx context.Context) error {
		h, err := r.settings.Host()
		if err != nil {
			return err
		}
		return do(h.Limited(ctx), parts.InForce(h))
	}
}

func (r Agent) handle(ctx context.Context, own parts.Etcd, network parts.PodNetwork, part string, a requestHandler) error {
	asked := agent.NewSignal()
	go kube.Follow(ctx, requests(a.signer), func(e watch.Event) {
		if e.Type != watch.Modified {
			asked.Give()
		}
	})
	answerAll := func(ctx context.Context) error { return a.do(ctx, own, network) }
	agent.Follow(ctx, asked, limited(answerAll), r.failed(part))
	return nil
}

// requestHandler is what a control plane does with the requests of a signer.
type requestHandler struct {
	signer string
	do     func(context.Context, parts.Etcd, parts.PodNetwork) error
}

var requestHandlers = map[string]requestHandler{
	"approve": {certificatesv1.KubeletServingSignerName, membership.Approve},
	"approve nodes": {
		certificatesv1.KubeAPIServerClientKubeletSignerName,
		func(ctx context.Context, own parts.Etcd, _ parts.PodNetwork) error {
			return membership.ApproveNodes(ctx, own)
		},
	},
	"issue": {join.FlannelSigner, membership.Issue},
}

func requests(signer string) kube.Watch {
	return join.WatchRequests(kube.Kubeconfig(controlplane.AgentConf), signer)
}

func limited(do func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := step.Limited(ctx)
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
	go agent.Forever(ctx, r.with(r.watchFiles), r.failed("watch files"))
	go agent.Forever(ctx, r.with(r.watchLeases), r.failed("watch the leases"))
	return agent.Repairer{Files: host.Files{}, Reconcilers: r.reconcilers, TakeLock: r.Lock, Log: r.Log}.Run(ctx, r.in)
}

func (r Agent) engines() []agent.WatchedEngine {
	dockerd := func(event agent.Events, unit, socket string) agent.WatchedEngine {
		follow := func(ctx context.Context, up, changed func()) error { return docker.Follow(ctx, socket, up, changed) }
		return agent.WatchedEngine{Event: event, Unit: unit, Socket: socket, Follow: follow}
	}
	return []agent.WatchedEngine{
		dockerd(agent.MainDocker, "docker", local.MainSocket),
		dockerd(agent.BootstrapDocker, "docker-bootstrap", bootstrapdocker.Socket),
		{Event: agent.Containerd, Follow: func(ctx context.Context, up, changed func()) error {
			h, err := r.settings.Host()
			if err != nil {
				return err
			}
			return h.CRISocket().Follow(ctx, up, changed)
		}},
	}
}

// reconcilers returns no reconcilers while a run has not completed, or while a newer
// executable is installed that will replace this process.
func (r Agent) reconcilers() (agent.Groups, error) {
	if !local.Complete(host.Files{}) || !process.SelfInstalled(host.Files{}, local.Binary) {
		return nil, nil
	}
	h, err := r.settings.Host()
	if err != nil {
		return nil, err
	}
	return Reconcilers(h, r.outages), nil
}
