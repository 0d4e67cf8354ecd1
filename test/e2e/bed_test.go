//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// bed is a cluster of two hosts on which faults are tried. Each host has a pod
// and a plain container with the probe.
type bed struct {
	master, worker machine
	service        string // the address of the probes' Service
	remake         func(ctx context.Context) error
}

// newBed starts the probes and waits until everything works.
func newBed(t *testing.T, master, worker machine, remake func(context.Context) error) *bed {
	t.Helper()
	b := &bed{master: master, worker: worker, remake: remake}
	startProbes(t, master, master, worker)
	b.service = master.kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")
	eventually(t, time.Minute, "the cluster before any fault", func() error { return b.whole(t.Context()) })
	return b
}

func (b *bed) other(m machine) machine {
	if m == b.master {
		return b.worker
	}
	return b.master
}

// whole returns what does not work, nil when everything does: all nodes and
// pods are Ready, packets pass in every direction, and status reports all ok.
func (b *bed) whole(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	pods, err := b.pods(ctx)
	if err != nil {
		return err
	}
	return b.each(func(m machine) error {
		out, err := m.try(ctx, b.probes(ctx, m, pods))
		if err == nil && out != "" {
			err = errors.New(strings.ReplaceAll(out, "\n", ", "))
		}
		if err == nil {
			err = b.status(ctx, m)
		}
		if err != nil {
			err = fmt.Errorf("%s: %w", m.name, err)
		}
		return err
	}, b.master, b.worker)
}

// each runs do for several hosts at the same time.
func (b *bed) each(do func(machine) error, hosts ...machine) error {
	var all sync.WaitGroup
	errs := make([]error, len(hosts))
	for i, m := range hosts {
		all.Go(func() { errs[i] = do(m) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// objects prints a line for each object that says whether a node works.
const objects = `docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf --request-timeout 10s get nodes,pods,leases -A ` +
	`-o 'jsonpath={range .items[*]}{.kind}|{.metadata.name}|{.status.phase}|{.status.conditions[?(@.type=="Ready")].status}|{.status.podIP}|{.spec.renewTime}{"\n"}{end}'`

// power restarts, kills or starts hosts.
func (b *bed) power(ctx context.Context, verb string, hosts ...machine) error {
	args := []string{verb}
	for _, m := range hosts {
		args = append(args, m.name)
	}
	return b.engine(ctx, args...)
}

// engine asks the engine that runs the hosts.
func (b *bed) engine(ctx context.Context, args ...string) error {
	_, err := host.Command{Args: append([]string{"docker"}, args...)}.Run(ctx)
	return err
}

// heartbeat is how old the lease of a live kubelet may be: it renews it every
// ten seconds.
const heartbeat = 20 * time.Second

// pods returns the addresses of the probes' pods by name, if every node and pod
// is Ready.
func (b *bed) pods(ctx context.Context) (map[string]string, error) {
	out, err := b.master.try(ctx, objects)
	if err != nil {
		return nil, fmt.Errorf("API: %w", err)
	}
	pods := map[string]string{}
	for line := range strings.Lines(out) {
		f := strings.Split(strings.TrimSpace(line), "|")
		switch kind, name := f[0], f[1]; kind {
		case "Lease":
			at, err := time.Parse(time.RFC3339, f[5])
			if (name == b.master.name || name == b.worker.name) && (err != nil || time.Since(at) > heartbeat) {
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
func (b *bed) probes(ctx context.Context, m machine, pods map[string]string) string {
	other := b.other(m)
	farContainer, err := other.try(ctx, "docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}'")
	if err != nil {
		return "echo 'no container probe on " + other.name + "'"
	}
	return fmt.Sprintf(`container=$(docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}') || echo "container probe"
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
docker exec kubelet kubectl --kubeconfig /etc/kubernetes/kubelet.conf --request-timeout 10s get node %s >/dev/null 2>&1 || echo "API by the kubelet's credential"
wait`, pods["probe-"+m.name], pods["probe-"+other.name], farContainer, b.service, other.ip, published, m.name)
}

// status fails unless `status` reports all ok.
func (b *bed) status(ctx context.Context, m machine) error {
	out, err := m.try(ctx, "timeout -k 5 50 kube-bootstrap status 2>&1")
	if err != nil {
		return fmt.Errorf("status: %w\n%s", err, missing(out))
	}
	return nil
}
