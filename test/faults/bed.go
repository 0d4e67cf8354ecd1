package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// Bed is a cluster of two hosts on which faults are tried. Each host has a pod
// and a plain container with the probe.
type Bed struct {
	master, worker hosts.Machine
	service        string // the address of the probes' Service
	remake         func(ctx context.Context) error
}

// NewBed starts the probes and waits until everything works.
func NewBed(t *testing.T, master, worker hosts.Machine, remake func(context.Context) error) *Bed {
	t.Helper()
	b := &Bed{master: master, worker: worker, remake: remake}
	traffic.StartProbes(t, master, master, worker)
	b.service = master.Kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")
	wait.Until(t, time.Minute, "the cluster before any fault", func() error { return b.whole(t.Context()) })
	return b
}

func (b *Bed) other(m hosts.Machine) hosts.Machine {
	if m == b.master {
		return b.worker
	}
	return b.master
}

// whole returns what does not work, nil when everything does: all nodes and
// pods are Ready, packets pass in every direction, and status reports all ok.
func (b *Bed) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pods, err := b.pods(ctx)
	if err != nil {
		return err
	}
	return b.each(func(m hosts.Machine) error {
		out, err := m.Try(ctx, b.probes(ctx, m, pods))
		if err == nil && out != "" {
			err = errors.New(strings.ReplaceAll(out, "\n", ", "))
		}
		if err == nil {
			err = b.Status(ctx, m)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", m.Name, err)
		}
		return err
	}, b.master, b.worker)
}

// each runs do for several hosts at the same time.
func (b *Bed) each(do func(hosts.Machine) error, hosts ...hosts.Machine) error {
	var all sync.WaitGroup
	errs := make([]error, len(hosts))
	for i, m := range hosts {
		all.Go(func() { errs[i] = do(m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// objects prints a line for each object that says whether a node works.
const objects = `docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s get ` +
	`nodes,pods,leases -A ` +
	`-o 'jsonpath={range .items[*]}` +
	`{.kind}|{.metadata.name}|{.status.phase}|{.status.conditions[?(@.type=="Ready")].status}` +
	`|{.status.podIP}|{.spec.renewTime}{"\n"}{end}'`

// power restarts, kills or starts hosts.
func (b *Bed) power(ctx context.Context, verb string, hosts ...hosts.Machine) error {
	args := []string{verb}
	for _, m := range hosts {
		args = append(args, m.Name)
	}
	return b.Engine(ctx, args...)
}

// Engine asks the engine that runs the hosts.
func (b *Bed) Engine(ctx context.Context, args ...string) error {
	_, err := host.Command{Args: append([]string{"docker"}, args...)}.Run(ctx)
	return err
}

// heartbeat is how old the lease of a live kubelet may be: it renews it every
// ten seconds.
const heartbeat = 20 * time.Second

// pods returns the addresses of the probes' pods by name, if every node and pod
// is Ready.
func (b *Bed) pods(ctx context.Context) (map[string]string, error) {
	out, err := b.master.Try(ctx, objects)
	if err != nil {
		return nil, fmt.Errorf("API: %w", err)
	}
	pods := map[string]string{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		switch kind, name := f[0], f[1]; kind {
		case "Lease":
			at, err := time.Parse(time.RFC3339, f[5])
			if (name == b.master.Name || name == b.worker.Name) && (err != nil || time.Since(at) > heartbeat) {
				return nil, fmt.Errorf("the kubelet of %s was last heard of at %s", name, f[5])
			}
		case "Pod", "Node":
			if ended := f[2] == "Failed" || f[2] == "Succeeded"; f[3] != "True" && !ended {
				return nil, fmt.Errorf("%s %s is not Ready: %q", kind, name, f[2:])
			}
			pods[name] = f[4]
		}
	}
	return pods, nil
}

// probes is a script that sends packets from a host, its pod and its plain
// container, and prints which did not arrive.
func (b *Bed) probes(ctx context.Context, m hosts.Machine, pods map[string]string) string {
	other := b.other(m)
	farContainer, err := other.Try(ctx, "docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}'")
	if err != nil {
		return "echo 'no container probe on " + other.Name + "'"
	}
	return fmt.Sprintf(
		`container=$(docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}') || echo "container probe"
pod=%s far_pod=%s far_container=%s service=%s far=%s
ask() { curl -sf -m 8 "http://$2" >/dev/null || echo "$1"; }
ask "pod to pod" "$pod:8080/ask?url=http://$far_pod:8080/" &
ask "pod to container" "$pod:8080/ask?url=http://$far_container:8080/" &
ask "container to pod" "$container:8080/ask?url=http://$far_pod:8080/" &
ask "container to container" "$container:8080/ask?url=http://$far_container:8080/" &
ask "container to Service" "$container:8080/ask?url=http://$service:8080/" &
ask "pod to Service by its name" "$pod:8080/ask?url=http://probe.default.svc.cluster.local:8080/" &
ask "host to Service" "$service:8080/" &
ask "host to published port" "$far:%s/" &
docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 10s \
	get node %s >/dev/null 2>&1 || echo "API by the kubelet's credential"
wait`, pods["probe-"+m.Name], pods["probe-"+other.Name], farContainer, b.service, other.IP, traffic.Published, m.Name)
}

// Status fails unless `status` reports all ok.
func (b *Bed) Status(ctx context.Context, m hosts.Machine) error {
	out, err := m.Try(ctx, "timeout -k 5 50 kube-bootstrap status 2>&1")
	if err != nil {
		return fmt.Errorf("status: %w\n%s", err, clusters.Missing(out))
	}
	return nil
}
