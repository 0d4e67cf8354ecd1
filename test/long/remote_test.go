//go:build e2e

package long

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const (
	remoteSpace = "kb-remote"
	remoteAddr  = "10.199.199.2"
	remoteAlias = "board" // of the user's ssh configuration
)

// TestRemoteEngine makes a cluster on an engine that shares neither network nor
// socket with us: a Docker of its own in a network namespace, reached over SSH,
// over TLS, and by a docker context.
func TestRemoteEngine(t *testing.T) {
	r := remoteEngine(t)
	overSSH := []string{"DOCKER_HOST=ssh://root@" + remoteAlias}
	overTLS := []string{"DOCKER_HOST=tcp://" + remoteAddr + ":2376", "DOCKER_TLS_VERIFY=1", "DOCKER_CERT_PATH=" + r.dir}
	r.run(t, overSSH, "cluster", "up", "--name", "e2e-r", "--workers", "1", "--bundle", hosts.Built.Bundle)
	r.answers(t, overSSH)
	r.refusesKubectlOfNode(t, overSSH)

	r.run(t, overTLS, "cluster", "up", "--name", "e2e-r", "--workers", "1", "--bundle", hosts.Built.Bundle)
	r.answers(t, overTLS)
	r.kubectl(t, overTLS) // the second run restored the bundle

	r.sh(t,
		`docker context create far --docker "host=tcp://$2:2376,ca=$1/ca.pem,cert=$1/cert.pem,key=$1/key.pem" `+
			`>/dev/null`)
	r.run(t, nil, "cluster", "clean", "--yes", "--name", "e2e-r", "--docker-context", "far")
	if left := r.sh(t,
		`docker --context far ps -aq; docker --context far volume ls -q; `+
			`docker --context far network ls -q --filter type=custom`); left != "" {
		t.Errorf("clean leaves %s", left)
	}
	if _, err := r.try(t, append(overTLS, "DOCKER_CERT_PATH="+t.TempDir()), "cluster", "status", "--name",
		"e2e-r"); err == nil {
		t.Error("the engine answers somebody without a certificate")
	}
}

type remote struct{ dir string }

func remoteEngine(t *testing.T) remote {
	r := remote{t.TempDir()}
	t.Cleanup(func() { r.sh(t, stopRemote) })
	r.certificates(t)
	r.sh(t, startRemote)
	return r
}

const startEngine = `nsenter --net=/run/netns/$4 setsid dockerd --data-root "$1/data" --exec-root "$1/exec" \
	-p "$1/dockerd.pid" \
	-H "unix://$1/docker.sock" -H tcp://$2:2376 --tlsverify --tlscacert ca.pem \
	--tlscert server.pem --tlskey server-key.pem >>dockerd.log 2>&1 </dev/null &`

const awaitEngine = `i=0
until docker -H "unix://$1/docker.sock" version >/dev/null 2>&1; do
	i=$((i+1)); [ $i -lt 300 ] || { tail dockerd.log >&2; exit 1; }
	sleep 0.1
done`

// startRemote: /sys stays the one of this machine, which `ip netns exec` would
// replace and with it hide the cgroups.
const startRemote = `cd "$1"
ip netns add $4
ip link add $4 type veth peer name eth0 netns $4
ip addr add 10.199.199.1/24 dev $4 && ip link set $4 up
ip -n $4 addr add $2/24 dev eth0 && ip -n $4 link set eth0 up && ip -n $4 link set lo up
` + startEngine + `
ssh-keygen -q -t ed25519 -N '' -f host_key && ssh-keygen -q -t ed25519 -N '' -f id
cat >sshd_config <<END
ListenAddress $2
HostKey $1/host_key
PidFile $1/sshd.pid
AuthorizedKeysFile $1/id.pub
StrictModes no
UsePAM no
MaxStartups 100
SetEnv DOCKER_HOST=unix://$1/docker.sock
END
cat >ssh_config <<END
Host $3
	HostName $2
	IdentityFile $1/id
	UserKnownHostsFile $1/known_hosts
END
echo "$2 $(cat host_key.pub)" >known_hosts
mkdir -p bin /run/sshd
printf '#!/bin/sh\nexec /usr/bin/ssh -F %s/ssh_config "$@"\n' "$1" >bin/ssh && chmod 755 bin/ssh
nsenter --net=/run/netns/$4 /usr/sbin/sshd -f "$1/sshd_config" -E "$1/sshd.log"
` + awaitEngine

const stopRemote = `cd "$1"
for one in dockerd sshd; do
	[ ! -s $one.pid ] || { pid=$(cat $one.pid); kill $pid; tail --pid=$pid -f /dev/null; }
done
! ip netns pids $4 >/dev/null 2>&1 || ip netns del $4
! ip link show $4 >/dev/null 2>&1 || ip link del $4
rm -rf data exec`

// sh runs a script whose $1 is the directory, $2 the address, $3 the alias and
// $4 the namespace of the engine.
func (r remote) sh(t *testing.T, script string) string {
	t.Helper()
	out, err := host.Command{
		Args: []string{"sh", "-c", script, "sh", r.dir, remoteAddr, remoteAlias, remoteSpace}, Env: r.env(nil),
	}.Run(context.WithoutCancel(t.Context()))
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r remote) env(more []string) []string {
	return append([]string{"DOCKER_CONFIG=" + r.dir, "PATH=" + r.dir + "/bin:" + os.Getenv("PATH")}, more...)
}

func (r remote) try(t *testing.T, env []string, args ...string) (string, error) {
	out, err := host.Command{Args: append([]string{hosts.Built.Binary}, args...), Env: r.env(env)}.Run(t.Context())
	return string(out), err
}

func (r remote) run(t *testing.T, env []string, args ...string) string {
	t.Helper()
	start := time.Now()
	out, err := r.try(t, env, args...)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s %s: %s", strings.Join(env, " "), strings.Join(args, " "), time.Since(start).Round(100*time.Millisecond))
	return out
}

// answers fails the test unless the API server answers from here, where the
// engine publishes it, and all nodes are Ready.
func (r remote) answers(t *testing.T, env []string) {
	t.Helper()
	r.run(t, env, "cluster", "status", "--name", "e2e-r")
	if published := r.sh(t, `docker -H "unix://$1/docker.sock" port e2e-r.api`); !strings.Contains(published,
		"-> "+remoteAddr+":") || strings.Contains(published, "0.0.0.0") {
		t.Errorf("the API server is published on other addresses: %s", published)
	}
	if config := r.run(t, env, "cluster", "kubeconfig", "--name", "e2e-r"); !strings.Contains(config,
		"server: https://"+remoteAddr+":") {
		t.Errorf("the kubeconfig does not lead to the engine's machine:\n%s", config)
	}
}

// refusesKubectlOfNode replaces kubectl on a control plane. This machine must run the kubectl of its
// bundle, and no other if it has no bundle.
func (r remote) refusesKubectlOfNode(t *testing.T, env []string) {
	t.Helper()
	ran := filepath.Join(r.dir, "ran")
	replace := `printf '#!/bin/sh\ntouch ` + ran +
		`\n' >/root/kubectl && chmod 755 /root/kubectl && docker cp /root/kubectl kubelet:/usr/local/bin/kubectl`
	r.run(t, env, "node", "ssh", "master-1", "--cluster", "e2e-r", "--", replace)
	r.kubectl(t, env)
	here, err := session.Selection{Name: "e2e-r"}.WithDefaults()
	must.NoError(t, err)
	must.NoError(t, os.Remove(here.Bundle()))
	if out, err := r.try(t, env, "cluster", "kubectl", "--name", "e2e-r", "get", "nodes"); err == nil ||
		!strings.Contains(out+err.Error(), "[kubectl-bundle]") {
		t.Errorf("kubectl without a bundle: %v\n%s", err, out)
	}
	if session.FileExists(ran) {
		t.Error("this machine ran a program of a node")
	}
}

func (r remote) kubectl(t *testing.T, env []string) {
	t.Helper()
	if out := r.run(t, env, "cluster", "kubectl", "--name", "e2e-r", "get", "nodes", "--no-headers"); strings.Count(out,
		" Ready ") != 2 {
		t.Errorf("kubectl lists other nodes than two that are Ready:\n%s", out)
	}
}

func (r remote) certificates(t *testing.T) {
	t.Helper()
	now := time.Now()
	must := func(err error) {
		must.NoError(t, err)
	}
	key, err := pki.NewKey()
	must(err)
	ca, err := pki.NewAuthority("engine", key, now)
	must(err)
	server, err := ca.Issue(pki.CertificateRequest{CommonName: "engine", Hosts: []string{remoteAddr}}, now)
	must(err)
	user, err := ca.Issue(pki.CertificateRequest{CommonName: "user", Client: true}, now)
	must(err)
	for name, data := range map[string][]byte{
		"ca.pem": ca.PEM().Cert, "server.pem": server.Cert, "server-key.pem": server.Key, "cert.pem": user.Cert,
		"key.pem": user.Key,
	} {
		must(os.WriteFile(filepath.Join(r.dir, name), data, 0o600))
	}
}
