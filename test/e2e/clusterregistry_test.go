//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// localRegistry runs a pod from an image that it pushes. Then it pulls an image
// through the registry of the cluster from an upstream, which is off when the next
// nodes pull it. The image is not my/app:dev, because the kubelet refuses an image
// that was loaded and that it has pulled by another name.
func (l clusterUser) localRegistry(t *testing.T) {
	const pushed = "localhost:5001/pulled/app:dev"
	l.Sh(t, "tar -C app -c . | docker import --change 'LABEL pulled=yes' - "+pushed+" && docker push "+pushed)
	l.runsFrom(t, "pushed", "worker-1", pushed)
	port, stop := l.upstream(t)
	const image = "library/cached:v1"
	local := fmt.Sprintf("localhost:%d/%s", port, image)
	l.Sh(t, "docker tag "+pushed+" "+local+" && docker push "+local+" && docker rmi "+local+" "+pushed)
	l.Sh(t, fmt.Sprintf("kube-bootstrap cluster up -f cluster.yaml --registry-mirror docker.io=http://10.212.0.1:%d "+
		"--progress none", port))
	l.runsFrom(t, "first", "worker-1", "docker.io/"+image)
	stop()
	l.runsFrom(t, "second", "db", "docker.io/"+image)

	hosts.Docker(t, "stop", "e2e-n.registry")
	out, err := l.Try(t.Context(), "kube-bootstrap cluster status")
	if text := fmt.Sprint(out, err); err == nil ||
		!strings.Contains(text, "the local registry localhost:5001, container e2e-n.registry, does not run") {
		t.Errorf("a registry that does not run: %s", text)
	}
	l.Sh(t, "kube-bootstrap cluster up --progress none && kube-bootstrap cluster status")
	l.runsFrom(t, "third", "master-1", "docker.io/"+image) // the registry has started while its upstream is off
	l.Sh(t, "kubectl delete pod pushed first second third --now")
}

// runsFrom runs a pod on a node, which pulls the image.
func (l clusterUser) runsFrom(t *testing.T, pod, node, image string) {
	t.Helper()
	l.Sh(t,
		fmt.Sprintf(
			`kubectl run %s --image %s --image-pull-policy Always \
			--overrides '{"spec":{"nodeName":"e2e-n-%s"}}' -- /probe serve
		kubectl wait --for condition=Ready pod/%[1]s --timeout 300s || { kubectl describe pod %[1]s; exit 1; }`, pod,
			image, node))
}

// upstream runs Debian's docker-registry on all addresses of this machine, by
// plain HTTP and without a password.
func (l clusterUser) upstream(t *testing.T) (port int, stop func()) {
	t.Helper()
	listener, err := net.Listen("tcp", ":0")
	must.NoError(t, err)
	port = listener.Addr().(*net.TCPAddr).Port
	must.NoError(t, listener.Close())
	dir := t.TempDir()
	config := fmt.Sprintf("version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"+
		"storage: {filesystem: {rootdirectory: %s/data}}\nhttp: {addr: \":%d\"}\n", dir, port)
	must.NoError(t, os.WriteFile(filepath.Join(dir, "config.yml"), []byte(config), 0o600))
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = host.Command{Args: []string{"docker-registry", "serve", filepath.Join(dir, "config.yml")}}.Run(ctx)
	}()
	stop = func() {
		cancel()
		<-ended
	}
	t.Cleanup(stop)
	wait.Until(t, 20*time.Second, "the upstream", func() error {
		answer, err := http.Get(fmt.Sprintf("http://127.0.0.1:%d/v2/", port)) //nolint:noctx // eventually has a limit
		if err != nil {
			return err
		}
		return answer.Body.Close()
	})
	return port, stop
}
