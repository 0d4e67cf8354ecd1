//go:build e2e

package long

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/faults"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// balanced is an address that no host has: the client sends to it by way of the addressed host,
// as where a load balancer or a router announces it.
const balanced = "10.139.255.1"

// TestTraffic sends, from a machine that is no host of the cluster, to pods and containers in
// every way that the users of a cluster have, and again after each event that changes the rules
// of the firewall on the addressed host. Docker isolates the containers of docker0.
func TestTraffic(t *testing.T) {
	made := hosts.New(t, "docker-28.5", "10.139.1.0/24", "e2e-traffic", "e2e-target")
	master, target := made[0], made[1]
	for _, m := range made {
		isolate(t, m)
		hosts.Owned(t, m)
	}
	clusters.Up(t, master, target, "")
	traffic.StartProbes(t, master, made...)
	sendAfterEach(t, master, target, waysToIsolated(target), events)
}

// sendAfterEach sends after each event, also in further ways, and prints a table. The probes run already.
func sendAfterEach(t *testing.T, master, target hosts.Machine, further []passage, events []event) {
	t.Helper()
	startTargets(t, master, target)
	clusters.Spread(t, master)
	ways := append(waysTo(outside(t, target), master, target), further...)
	var columns []string
	var table [][]string
	for _, e := range events {
		t.Run(e.name, func(t *testing.T) {
			e.do(t, target)
			columns, table = append(columns, e.name), append(table, arrive(t, target, ways))
		})
	}
	t.Log("how long after each event a packet arrived\n" + tabulated(ways, columns, table))
}

// isolate keeps the containers of docker0 apart from one another.
func isolate(t *testing.T, m hosts.Machine) {
	t.Helper()
	m.Sh(t, `mkdir -p /etc/docker && echo '{"icc": false}' >/etc/docker/daemon.json && systemctl restart docker`)
}

// event changes the rules of the firewall on the addressed host.
type event struct {
	name string
	do   func(*testing.T, hosts.Machine)
}

var events = []event{
	{"none", func(*testing.T, hosts.Machine) {}},
	{"Docker restarted", does("systemctl restart docker")},
	{"chains emptied", does("iptables -F FORWARD; iptables -F DOCKER-USER")},
	{"ruleset flushed", does("nft flush ruleset")},
	{"host rebooted", func(t *testing.T, m hosts.Machine) { hosts.Restart(t, m) }},
}

func does(script string) func(*testing.T, hosts.Machine) {
	return func(t *testing.T, m hosts.Machine) { m.Sh(t, script) }
}

// passage is a command that sends a packet on a machine, and what it prints: the address from which
// the packet arrived.
type passage struct {
	name    string
	on      hosts.Machine
	command string
	want    string // any if empty
}

// never is wanted of a packet that must not arrive.
const never = "no answer"

// waysTo lists what is asked. The Services are told apart by their ports.
func waysTo(client, master, target hosts.Machine) []passage {
	var ways []passage
	fromClient := func(name, address, want string) {
		ways = append(ways, passage{name, client, "timeout 10 probe get http://" + address + "/", want})
	}
	for _, s := range exposed {
		want := client.IP
		switch {
		case s.policy == "Cluster":
			want = ""
		case s.pod == "far":
			want = never
		}
		name := fmt.Sprintf(" %s, %s pod", s.policy, s.pod)
		fromClient("NodePort"+name, fmt.Sprint(target.IP, ":", s.port), want)
		fromClient("LoadBalancer"+name, fmt.Sprint(balanced, ":", s.port), want)
	}
	fromClient("hostPort", target.IP+":18081", client.IP)
	fromClient("published port", target.IP+":"+traffic.Published, client.IP)
	pod := "timeout 30 kubectl exec probe-" + target.Name + " -- /probe "
	return append(ways,
		passage{
			"pod to pod of its host", master,
			pod + "get http://$(kubectl get pod second -o 'jsonpath={.status.podIP}'):8080/", "",
		},
		passage{"pod to DNS", master, pod + "resolve probe.default.svc.cluster.local", ""},
		passage{"pod to port of another network", master, pod + "get http://" + target.IP + ":18082/", ""},
		passage{
			"container to port of another network", target, inContainer + "get http://" + target.IP + ":18082/", "",
		},
	)
}

const inContainer = "timeout 15 docker exec probe /probe "

// waysToIsolated lists what is asked where Docker isolates the containers of docker0.
func waysToIsolated(target hosts.Machine) []passage {
	const isolated = "http://$(docker inspect owner -f '{{.NetworkSettings.Networks.bridge.IPAddress}}'):8080/"
	return []passage{
		{"container to isolated container", target, inContainer + "get " + isolated, never},
		{"host to isolated container", target, "timeout 10 probe get " + isolated, ""},
	}
}

// exposed are Services with one pod each, on the addressed host or on the other one.
var exposed = []struct {
	policy, pod string
	port        int
}{{"Cluster", "near", 31081}, {"Cluster", "far", 31082}, {"Local", "near", 31083}, {"Local", "far", 31084}}

const exposedService = `
apiVersion: v1
kind: Service
metadata: {name: exposed-%[1]d}
spec:
  type: LoadBalancer
  externalTrafficPolicy: %[2]s
  selector: {at: %[3]s}
  ports: [{port: %[1]d, nodePort: %[1]d, targetPort: 8080}]
`

const secondPod = `
apiVersion: v1
kind: Pod
metadata: {name: second}
spec:
  nodeName: %s
  containers:
  - name: probe
    image: %s
    imagePullPolicy: Never
    command: [/probe, serve]
    ports: [{containerPort: 8080, hostPort: 18081}]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

// startTargets adds what the ways lead to.
func startTargets(t *testing.T, master, target hosts.Machine) {
	t.Helper()
	kubectl := func(args string) { hosts.Soon(t, time.Minute, args, master, "kubectl "+args) }
	create := func(yaml string) { kubectl("apply -f - <<'YAML'\n" + yaml + "\nYAML") }
	kubectl("label --overwrite pod probe-" + target.Name + " at=near")
	kubectl("label --overwrite pod probe-" + master.Name + " at=far")
	for _, s := range exposed {
		create(fmt.Sprintf(exposedService, s.port, s.policy, s.pod))
		kubectl(fmt.Sprintf(announce, s.port, balanced))
	}
	kubectl("label --overwrite namespace default pod-security.kubernetes.io/enforce=privileged") // for the host port
	create(fmt.Sprintf(secondPod, target.Name, hosts.ProbeImage))
	traffic.PodAddress(t, master, "second")
	target.Sh(t, "docker update --restart always owner && docker network create app")
	target.Sh(t, "docker run -d --name app --network app --restart always -p 18082:8080 "+hosts.ProbeImage+
		" /probe serve")
}

// announce does what a controller of load balancers does.
const announce = `patch service exposed-%d --subresource status -p '{"status": {"loadBalancer": {"ingress": ` +
	`[{"ip": %q}]}}}'`

// outside starts a machine in the network of the hosts that is no host of the cluster.
func outside(t *testing.T, target hosts.Machine) hosts.Machine {
	t.Helper()
	const name = "e2e-traffic-outside"
	network := hosts.Docker(t, "inspect", "-f", "{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{end}}",
		target.Name)
	image := hosts.Docker(t, "inspect", "-f", "{{.Config.Image}}", target.Name)
	t.Cleanup(func() { _ = (&faults.Bed{}).Engine(context.Background(), "rm", "-f", "-v", name) })
	hosts.Docker(t, "run", "-d", "--name", name, "--network", network, "--cap-add", "NET_ADMIN", "--entrypoint",
		"sleep", image, "infinity")
	m := hosts.Machine{
		Name: name, IP: hosts.Docker(t, "inspect", "-f",
			"{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", name),
	}
	m.Put(t, hosts.Built.Probe, "/usr/local/bin/probe")
	m.Sh(t, "ip route add "+balanced+" via "+target.IP)
	return m
}

// arrive waits until every packet arrives and status reports all ok, and expects the same once
// more, because a repair may take back what another one has repaired. It returns how long each took.
func arrive(t *testing.T, target hosts.Machine, ways []passage) []string {
	looks := []func() error{}
	for _, w := range ways {
		looks = append(looks, func() error { return w.passes(t.Context()) })
	}
	looks = append(looks, func() error { return (&faults.Bed{}).Status(t.Context(), target) })
	took, errs := awaited(t.Context(), looks)
	_, later := awaited(t.Context(), looks)
	for i, w := range append(ways, passage{name: statusOK}) {
		switch {
		case errs[i] != nil:
			took[i] = "FAILED"
			t.Errorf("%s: %v", w.name, errs[i])
		case later[i] != nil:
			took[i] = "STOPPED"
			t.Errorf("%s, after everything was repaired: %v", w.name, later[i])
		case w.want == never:
			took[i] = never
		}
	}
	return took
}

const statusOK = "status is ok"

// awaited is eventually for several, of which a few run at the same time: all of them would take the
// processors that the repair needs.
func awaited(ctx context.Context, looks []func() error) ([]string, []error) {
	began := time.Now()
	took, errs := make([]string, len(looks)), make([]error, len(looks))
	var all sync.WaitGroup
	slots := make(chan struct{}, 4)
	tried := func(look func() error) error {
		slots <- struct{}{}
		defer func() { <-slots }()
		return look()
	}
	for i, look := range looks {
		all.Go(func() {
			for errs[i] = tried(look); errs[i] != nil && ctx.Err() == nil &&
				time.Since(began) < wait.Patience*2*time.Minute; errs[i] = tried(look) {
				time.Sleep(2 * time.Second)
			}
			took[i] = time.Since(began).Round(time.Second).String()
		})
	}
	all.Wait()
	return took, errs
}

func (p passage) passes(ctx context.Context) error {
	got, err := p.on.Try(ctx, p.command)
	switch {
	case p.want == never && err == nil:
		return errors.New("it arrived from " + got)
	case p.want == never:
		return nil
	case err == nil && p.want != "" && p.want != got:
		return fmt.Errorf("it arrived from %s, want %s", got, p.want)
	}
	return err
}

func tabulated(ways []passage, columns []string, table [][]string) string {
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "way")
	for _, name := range columns {
		fmt.Fprint(w, "\t", name)
	}
	for i, p := range append(ways, passage{name: statusOK}) {
		fmt.Fprint(w, "\n", p.name)
		for _, column := range table {
			fmt.Fprint(w, "\t", column[i])
		}
	}
	w.Flush()
	return text.String()
}
