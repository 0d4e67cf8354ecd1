// Package traffic sends packets between pods, containers and hosts of a cluster.
package traffic

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// End is one place from which a packet can start, or where it can arrive.
type End struct {
	kind string // "pod", "container" or "host"
	on   hosts.Machine
	ip   string
	exec string // prefix of a command that runs there
}

// Published is the port of each host that leads to its plain container.
const Published = "18080"

// StartProbes gives each machine a plain container and a pod with the probe.
func StartProbes(t *testing.T, master hosts.Machine, all ...hosts.Machine) []End {
	t.Helper()
	var ends []End
	for _, m := range all {
		m.Sh(t, "docker inspect probe >/dev/null 2>&1 || docker run -d --name probe --restart always -p "+Published+
			":8080 "+hosts.ProbeImage+" /probe serve")
		Apply(t, master, fmt.Sprintf(ProbePod, m.Name, m.Name, hosts.ProbeImage))
		ends = append(ends, End{kind: "host", on: m, ip: m.IP, exec: "/usr/local/bin/probe"})
	}
	Apply(t, master, probeService)
	return append(ends, findProbes(t, master, all...)...)
}

// findProbes waits for the probes and asks for their addresses as they are now.
func findProbes(t *testing.T, master hosts.Machine, all ...hosts.Machine) []End {
	t.Helper()
	var ends []End
	for _, m := range all {
		pod := PodAddress(t, master, "probe-"+m.Name)
		ends = append(ends,
			End{
				"container", m, m.Sh(t, "docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}'"),
				"docker exec probe /probe",
			},
			End{"pod", m, pod, ""})
	}
	return ends
}

// PodAddress waits until a pod is Ready and returns its address.
func PodAddress(t *testing.T, master hosts.Machine, pod string) (ip string) {
	t.Helper()
	wait.Until(t, 3*time.Minute, "pod "+pod, func() error {
		out, err := master.Try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get "+
			"pod "+pod+` -o 'jsonpath={.status.podIP} {.status.conditions[?(@.type=="Ready")].status}'`)
		if err != nil {
			return err
		}
		words := strings.Fields(out)
		if len(words) != 2 || words[1] != "True" {
			return fmt.Errorf("not ready: %q", out)
		}
		ip = words[0]
		return nil
	})
	return ip
}

// Apply applies a manifest.
func Apply(t *testing.T, master hosts.Machine, yaml string) {
	t.Helper()
	master.Sh(t, "docker exec -i kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - <<'YAML'\n"+yaml+
		"\nYAML")
}

// run runs the probe at an end. A pod's is reached through the API server.
func (e End) run(t *testing.T, master hosts.Machine, args string) (string, error) {
	t.Helper()
	if e.kind == "pod" {
		return master.Try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf exec "+
			"probe-"+e.on.Name+" -- /probe "+args)
	}
	return e.on.Try(t.Context(), e.exec+" "+args)
}

// Matrix sends from every pod, container and host to every pod and container,
// and sees to it that the source address arrives as it was sent.
func Matrix(t *testing.T, master hosts.Machine, ends []End) {
	t.Helper()
	for _, from := range ends {
		for _, to := range ends {
			if to.kind == "host" || from == to {
				continue
			}
			var got string
			wait.Until(t, time.Minute, fmt.Sprintf("%s on %s to %s on %s", from.kind, from.on.Name, to.kind,
				to.on.Name), func() (err error) {
				got, err = from.run(t, master, "get http://"+to.ip+":8080/")
				return err
			})
			if from.kind != "host" && got != from.ip {
				t.Errorf("%s on %s to %s on %s: source %s arrived as %s", from.kind, from.on.Name, to.kind, to.on.Name,
					from.ip, got)
			}
		}
	}
}

// Services asks for the Service by name from a pod and by address from plain
// containers, and for its name from a plain container that is told of the DNS.
func Services(t *testing.T, master hosts.Machine, ends []End) {
	t.Helper()
	ip := master.Kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")
	for _, from := range ends {
		url := "http://" + ip + ":8080/"
		if from.kind == "pod" {
			url = "http://probe.default.svc.cluster.local:8080/"
		}
		wait.Until(t, time.Minute, "Service from "+from.kind+" on "+from.on.Name, func() error {
			_, err := from.run(t, master, "get "+url)
			return err
		})
		if from.kind == "container" {
			hosts.Says(t, time.Minute, "DNS from a container on "+from.on.Name, from.on,
				Resolving+"probe.default.svc.cluster.local", ip)
		}
	}
}

// Resolving asks the DNS of the cluster from a plain container. kube-proxy and CoreDNS may start
// after the command that made the host.
const Resolving = "docker run --rm --dns 10.96.0.10 " + hosts.ProbeImage + " /probe resolve "

// BigTransfer moves 100 MB from a container on one host to one on another, and
// sees that nothing was cut into fragments on its way.
func BigTransfer(t *testing.T, from, to End) {
	t.Helper()
	const fragments = "awk '/^Ip:/ && $2 ~ /[0-9]/ {print $19}' /proc/net/snmp"
	before := from.on.Sh(t, fragments) + to.on.Sh(t, fragments)
	if got := from.on.Sh(t, from.exec+" download 'http://"+to.ip+":8080/bytes?n=104857600'"); got != "104857600" {
		t.Errorf("got %s bytes", got)
	}
	if after := from.on.Sh(t, fragments) + to.on.Sh(t, fragments); after != before {
		t.Errorf("fragments were made: %s, then %s", before, after)
	}
}

// ProbePod is the manifest of a pod with the probe; its name, its node and its image are missing.
const ProbePod = `
apiVersion: v1
kind: Pod
metadata: {name: probe-%s, labels: {app: probe}}
spec:
  nodeName: %s
  tolerations: [{operator: Exists}]
  containers:
  - name: probe
    image: %s
    imagePullPolicy: Never
    command: [/probe, serve]
    readinessProbe: {httpGet: {path: /, port: 8080}, periodSeconds: 1}
`

const probeService = `
apiVersion: v1
kind: Service
metadata: {name: probe}
spec:
  selector: {app: probe}
  ports: [{port: 8080}]
`

// Packets starts the probes and sends packets from each to each.
func Packets(t *testing.T, master hosts.Machine, made ...hosts.Machine) {
	ends := StartProbes(t, master, made...)
	Matrix(t, master, ends)
	Services(t, master, ends)
	BigTransfer(t, Container(ends, made[0]), Container(ends, made[1]))
}

// PacketsAgain sends packets from each to each of the probes that run.
func PacketsAgain(t *testing.T, master hosts.Machine, made ...hosts.Machine) {
	ends := findProbes(t, master, made...)
	Matrix(t, master, ends)
	Services(t, master, ends)
}

// Container returns the plain container of a machine.
func Container(ends []End, on hosts.Machine) End {
	for _, e := range ends {
		if e.kind == "container" && e.on == on {
			return e
		}
	}
	return End{}
}
