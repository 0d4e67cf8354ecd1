package registries

import (
	"fmt"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/traffic"
)

// PodsFrom starts pods whose images are nowhere but in the registry, by its
// own name and by that of an upstream.
func PodsFrom(t *testing.T, master hosts.Machine, r *Private, all ...hosts.Machine) {
	t.Helper()
	master.Sh(t,
		fmt.Sprintf(
			`mkdir -p /tmp/only && cp /usr/local/bin/probe /tmp/only/ && tar -C /tmp/only -c . | 
	docker import - %[1]s/k8s/only:1 >/dev/null &&
rm -r /tmp/only &&
printf %%s %[2]s | docker login -u %[3]s --password-stdin %[1]s >/dev/null 2>&1 && docker push -q %[1]s/k8s/only:1`,
			r.Addr, PrivatePassword, PrivateUser))
	for name, image := range map[string]string{"own": r.Addr + "/k8s/only:1", "upstream": "registry.k8s.io/only:1"} {
		for _, on := range all {
			traffic.Apply(t, master, fmt.Sprintf(
				`{apiVersion: v1, kind: Pod, metadata: {name: %[1]s-%[2]s}, 
  spec: {nodeName: %[2]s, tolerations: [{operator: Exists}],
  containers: [{name: probe, image: "%[3]s", imagePullPolicy: Always, command: [/probe, serve]}]}}`, name, on.Name,
				image))
		}
	}
	for _, pod := range []string{"own-", "upstream-"} {
		for _, on := range all {
			traffic.PodAddress(t, master, pod+on.Name)
		}
	}
}

// ForgetRegistry takes back what podsFrom did to Docker.
func ForgetRegistry(r *Private) string {
	return "docker logout " + r.Addr + " >/dev/null 2>&1; rm -rf /root/.docker; docker rmi -f " + r.Addr +
		"/k8s/only:1 >/dev/null; "
}

// KeptSecret expects the password only in files that root alone can read.
func KeptSecret(t *testing.T, all ...hosts.Machine) {
	t.Helper()
	for _, m := range all {
		out := m.Sh(t, `b=$(printf %s `+PrivateUser+":"+PrivatePassword+` | base64)
find /etc /var/lib/kube-bootstrap /var/lib/kubelet/config.json /run -xdev -type f \( -perm /077 \) -exec grep -lE "`+
			PrivatePassword+`|$b" {} + 2>/dev/null || true`)
		if out != "" {
			t.Errorf("%s: the registry's password is in files that others may read:\n%s", m.Name, out)
		}
	}
}
