//go:build e2e

package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// end is one place from which a packet can start, or where it can arrive.
type end struct {
	kind string // "pod", "container" or "host"
	on   machine
	ip   string
	exec string // prefix of a command that runs there
}

const probeImage = "kube-bootstrap.dev/probe:test"

// published is the port of each host that leads to its plain container.
const published = "18080"

// startProbes gives each machine a plain container and a pod with the probe.
func startProbes(t *testing.T, master machine, all ...machine) []end {
	t.Helper()
	var ends []end
	for _, m := range all {
		m.sh(t, "docker inspect probe >/dev/null 2>&1 || docker run -d --name probe --restart always -p "+published+":8080 "+probeImage+" /probe serve")
		apply(t, master, fmt.Sprintf(probePod, m.name, m.name, probeImage))
		ends = append(ends, end{kind: "host", on: m, ip: m.ip, exec: "/usr/local/bin/probe"})
	}
	apply(t, master, probeService)
	return append(ends, findProbes(t, master, all...)...)
}

// findProbes waits for the probes and asks for their addresses as they are now.
func findProbes(t *testing.T, master machine, all ...machine) []end {
	t.Helper()
	var ends []end
	for _, m := range all {
		pod := podAddress(t, master, "probe-"+m.name)
		ends = append(ends,
			end{"container", m, m.sh(t, "docker inspect probe -f '{{.NetworkSettings.Networks.bridge.IPAddress}}'"), "docker exec probe /probe"},
			end{"pod", m, pod, ""})
	}
	return ends
}

func podAddress(t *testing.T, master machine, pod string) (ip string) {
	t.Helper()
	eventually(t, 3*time.Minute, "pod "+pod, func() error {
		out, err := master.try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf get pod "+pod+` -o 'jsonpath={.status.podIP} {.status.conditions[?(@.type=="Ready")].status}'`)
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

func apply(t *testing.T, master machine, yaml string) {
	t.Helper()
	master.sh(t, "docker exec -i kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf apply -f - <<'YAML'\n"+yaml+"\nYAML")
}

// run runs the probe at an end. A pod's is reached through the API server.
func (e end) run(t *testing.T, master machine, args string) (string, error) {
	t.Helper()
	if e.kind == "pod" {
		return master.try(t.Context(), "docker exec kubelet kubectl --kubeconfig /etc/kubernetes/admin.conf exec probe-"+e.on.name+" -- /probe "+args)
	}
	return e.on.try(t.Context(), e.exec+" "+args)
}

// matrix sends from every pod, container and host to every pod and container,
// and sees to it that the source address arrives as it was sent.
func matrix(t *testing.T, master machine, ends []end) {
	t.Helper()
	for _, from := range ends {
		for _, to := range ends {
			if to.kind == "host" || from == to {
				continue
			}
			var got string
			eventually(t, time.Minute, fmt.Sprintf("%s on %s to %s on %s", from.kind, from.on.name, to.kind, to.on.name), func() (err error) {
				got, err = from.run(t, master, "get http://"+to.ip+":8080/")
				return err
			})
			if from.kind != "host" && got != from.ip {
				t.Errorf("%s on %s to %s on %s: source %s arrived as %s", from.kind, from.on.name, to.kind, to.on.name, from.ip, got)
			}
		}
	}
}

// services asks for the Service by name from a pod and by address from plain
// containers, and for its name from a plain container that is told of the DNS.
func services(t *testing.T, master machine, ends []end) {
	t.Helper()
	ip := master.kubectl(t, "get service probe -o 'jsonpath={.spec.clusterIP}'")
	for _, from := range ends {
		url := "http://" + ip + ":8080/"
		if from.kind == "pod" {
			url = "http://probe.default.svc.cluster.local:8080/"
		}
		eventually(t, time.Minute, "Service from "+from.kind+" on "+from.on.name, func() error {
			_, err := from.run(t, master, "get "+url)
			return err
		})
		if from.kind == "container" {
			says(t, time.Minute, "DNS from a container on "+from.on.name, from.on, resolving+"probe.default.svc.cluster.local", ip)
		}
	}
}

// resolving asks the DNS of the cluster from a plain container. kube-proxy and CoreDNS may start
// after the command that made the host.
const resolving = "docker run --rm --dns 10.96.0.10 " + probeImage + " /probe resolve "

// bigTransfer moves 100 MB from a container on one host to one on another, and
// sees that nothing was cut into fragments on its way.
func bigTransfer(t *testing.T, from, to end) {
	t.Helper()
	const fragments = "awk '/^Ip:/ && $2 ~ /[0-9]/ {print $19}' /proc/net/snmp"
	before := from.on.sh(t, fragments) + to.on.sh(t, fragments)
	if got := from.on.sh(t, from.exec+" download 'http://"+to.ip+":8080/bytes?n=104857600'"); got != "104857600" {
		t.Errorf("got %s bytes", got)
	}
	if after := from.on.sh(t, fragments) + to.on.sh(t, fragments); after != before {
		t.Errorf("fragments were made: %s, then %s", before, after)
	}
}

const probePod = `
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
