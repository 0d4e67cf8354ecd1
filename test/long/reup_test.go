//go:build e2e

package long

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/clusters"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/localcluster"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/pages"
	"github.com/kube-bootstrap/kube-bootstrap/test/wait"
)

// TestReup changes lines in a checkout of Kubernetes and has a cluster that is
// up run them: what changed is relaunched, and nothing else is touched.
func TestReup(t *testing.T) {
	c := localCluster{
		localcluster.Cluster{
			Name: "e2e-reup", Flags: []string{
				"--workers", "1", "--dind-subnet", "10.194.0.0/16", "--bundle", hosts.Built.Bundle, "--snapshot=false",
			},
		},
	}
	t.Cleanup(func() { c.Cleaned(t) })
	from := layOut(t)
	from.change(t, apiServer, "first")
	began := time.Now()
	c.Run(t, "up", append(c.Flags, "--k8s-dir", from.dir)...)
	up := time.Since(began)
	wait.Until(t, time.Minute, "nodes and pods",
		func() error { return clusters.AllReady(t, c.Master(), began.UTC(), 2) })
	clusters.Spread(t, c.Master())
	first := c.version(t)
	if !strings.Contains(first, "+") {
		t.Errorf("up --k8s-dir: the API server is %s, and was changed", first)
	}

	t.Run("a line of the API server", func(t *testing.T) {
		from.change(t, apiServer, "second")
		untouched, worker := c.besides(t, "kube-apiserver"), c.Worker().Running(t)
		began := time.Now()
		r := c.reup(t, from)
		took := time.Since(began)
		t.Logf("with a changed API server: up from source: %s, reup: %s, that is %.2f of it", up.Round(time.Second/10),
			took.Round(time.Second/10), took.Seconds()/up.Seconds())
		if now := c.version(t); now == first || now != r.Programs["kube-apiserver"] {
			t.Errorf("the API server is %s, was %s, and shall be %s", now, first, r.Programs["kube-apiserver"])
		}
		same(t, c.Master(), untouched, c.besides(t, "kube-apiserver"))
		same(t, c.Worker(), worker, c.Worker().Running(t))
		if logs := c.Master().Sh(t,
			"cat /var/log/pods/kube-system_kube-apiserver-*/kube-apiserver/*.log"); !strings.Contains(logs,
			"this is second") {
			t.Error("the new line is not in the log of the API server")
		}
	})
	t.Run("again", func(t *testing.T) {
		master, worker := c.Master().Running(t), c.Worker().Running(t)
		if r := c.reup(t, from); len(r.Nodes) > 0 {
			t.Errorf("relaunched on %v, with nothing changed", r.Nodes)
		}
		same(t, c.Master(), master, c.Master().Running(t))
		same(t, c.Worker(), worker, c.Worker().Running(t))
	})
	t.Run("killed, and again", func(t *testing.T) { c.killedReup(t, from) })
	t.Run("a checkout that does not compile", func(t *testing.T) {
		from.change(t, scheduler, "\" + nothing + \"")
		master, worker := c.Master().Running(t), c.Worker().Running(t)
		out, err := host.Command{Args: c.Command("reup", "--k8s-dir", from.dir)}.Run(t.Context())
		if err == nil || !strings.Contains(err.Error(), "undefined: nothing") {
			t.Errorf("got %v\n%s", err, out)
		}
		same(t, c.Master(), master, c.Master().Running(t))
		same(t, c.Worker(), worker, c.Worker().Running(t))
	})
	t.Run("one that is named", func(t *testing.T) {
		from.change(t, kubelet, "third") // the scheduler does not compile yet
		pods := c.pods(t)
		r := c.reup(t, from, "--build-kubelet")
		if len(r.Nodes) != 2 || r.Programs["kubelet"] == r.Programs["kubectl"] {
			t.Errorf("got %v", r)
		}
		if now := c.pods(t); now != pods {
			t.Errorf("a new kubelet has touched pods:\n%s\nthen\n%s", pods, now)
		}
	})
	t.Run("the release again", func(t *testing.T) {
		from.restore(t)
		r := c.reup(t, from)
		for name, version := range r.Programs {
			if strings.Contains(version, "+") {
				t.Errorf("%s is %s, and nothing is changed any more", name, version)
			}
		}
		for _, m := range []hosts.Machine{c.Master(), c.Worker()} {
			if images := m.Sh(t, "ctr -n k8s.io images ls -q; "+
				"docker images --format '{{.Repository}}:{{.Tag}}'"); strings.Contains(images,
				":"+catalog.Newest().Patch+"-") {
				t.Errorf("%s keeps images that nothing runs from:\n%s", m.Name, images)
			}
		}
	})
	t.Run("the page about it", func(t *testing.T) { c.page(t, from) })
}

// page does what docs/checkout.md says, in a home with the checkout.
func (c localCluster) page(t *testing.T, from checkout) {
	l := localcluster.User{Cluster: c.Name, Subnet: "10.194.0.0/16", Dir: filepath.Dir(from.dir)}
	for _, block := range pages.Read(t, "checkout.md").Commands() {
		l.Sh(t, "export HOME="+l.Dir+" XDG_CACHE_HOME=${XDG_CACHE_HOME:-$HOME/.cache} GOPATH=$(go env GOPATH) "+
			"GOCACHE=$(go env GOCACHE)\n"+block)
	}
}

// reupped is what `cluster reup -o json` prints.
type reupped struct {
	Programs map[string]string
	Nodes    []string
}

func (c localCluster) reup(t *testing.T, from checkout, flags ...string) (r reupped) {
	t.Helper()
	out := c.Run(t, "reup", append(flags, "--k8s-dir", from.dir, "-o", "json")...)
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return r
}

// killedReup ends a run that has begun on the nodes; the next one finishes it.
func (c localCluster) killedReup(t *testing.T, from checkout) {
	from.change(t, apiServer, "fourth")
	before := c.version(t)
	c.KillIn(t, "run master on "+c.Master().Name, 2*time.Second, "reup", "--k8s-dir", from.dir)
	r := c.reup(t, from)
	if now := c.version(t); now == before || now != r.Programs["kube-apiserver"] {
		t.Errorf("the API server is %s, was %s, and shall be %s", now, before, r.Programs["kube-apiserver"])
	}
}

// version is what the API server says that it is.
func (c localCluster) version(t *testing.T) string {
	t.Helper()
	var v struct{ GitVersion string }
	must.NoError(t, json.Unmarshal([]byte(c.Master().Kubectl(t, "get --raw /version")), &v))
	return v.GitVersion
}

// besides returns the running containers of the master except those of one
// component. The kubelet removes ended containers at any time.
func (c localCluster) besides(t *testing.T, program string) string {
	t.Helper()
	return c.Master().Sh(t,
		fmt.Sprintf(
			`for s in /run/docker.sock /run/docker-bootstrap.sock; do docker -H unix://$s ps -q --no-trunc | sort; done
ctr -n k8s.io containers ls -q 'labels."io.kubernetes.pod.name"!="%s-%s"' |
	grep -Fx "$(ctr -n k8s.io tasks ls -q)" | sort`, program, c.Master().Name))
}

// pods lists the running containers of all pods. It omits ended containers, because
// the kubelet removes them at any time.
func (c localCluster) pods(t *testing.T) string {
	t.Helper()
	const list = "ctr -n k8s.io tasks ls -q | sort"
	return c.Master().Sh(t, list) + c.Worker().Sh(t, list)
}

func same(t *testing.T, m hosts.Machine, before, now string) {
	t.Helper()
	if before != now {
		t.Errorf("%s: something was touched:\n%s\nthen\n%s", m.Name, before, now)
	}
}

// checkout is a working copy of Kubernetes.
type checkout struct{ dir string }

// source is a file of a checkout and a line of it, after which another is put.
type source struct{ file, after string }

var (
	apiServer = source{
		"cmd/kube-apiserver/app/server.go", "func Run(ctx context.Context, opts options.CompletedOptions) error {",
	}
	kubelet = source{
		"cmd/kubelet/app/server.go", "func Run(ctx context.Context, s *options.KubeletServer, " +
			"kubeDeps *kubelet.Dependencies, featureGate featuregate.FeatureGate) error {",
	}
	scheduler = source{
		"cmd/kube-scheduler/app/server.go", "func Run(ctx context.Context, " +
			"cc *schedulerserverconfig.CompletedConfig, sched *scheduler.Scheduler) error {",
	}
)

var ownModule = regexp.MustCompile(`(?m)^\s+(k8s\.io/[a-z-]+) v0\.0\.0( |$)`)

// layOut makes a checkout of modules: a repository has the staging ones below it.
func layOut(t *testing.T) checkout {
	t.Helper()
	c := checkout{filepath.Join(t.TempDir(), "kubernetes")}
	version := strings.TrimPrefix(catalog.Newest().Patch, "v1")
	c.take(t, "k8s.io/kubernetes@"+catalog.Newest().Patch, ".")
	mod := must.Read(t, filepath.Join(c.dir, "go.mod"))
	for _, m := range ownModule.FindAllStringSubmatch(string(mod), -1) {
		c.take(t, m[1]+"@v0"+version, "staging/src/"+m[1])
	}
	return c
}

// take copies a module out of Go's cache, where it must not be written.
func (c checkout) take(t *testing.T, module, to string) {
	t.Helper()
	out, err := host.Command{
		Args: []string{"go", "mod", "download", "-json", module}, Dir: os.TempDir(),
	}.Run(t.Context())
	var answer struct{ Dir string }
	if err == nil {
		err = json.Unmarshal(out, &answer)
	}
	target := filepath.Join(c.dir, to)
	if err == nil {
		_, err = host.Run(t.Context(), "sh", "-c", "mkdir -p "+target+" && cp -r "+answer.Dir+"/. "+target+
			" && chmod -R u+w "+target)
	}
	must.NoError(t, err)
}

// change has a program log a word when it starts.
func (c checkout) change(t *testing.T, at source, word string) {
	t.Helper()
	c.restoreFile(t, at)
	path := filepath.Join(c.dir, at.file)
	text := must.Read(t, path)
	changed := strings.Replace(string(text), at.after+"\n", at.after+"\n\tklog.InfoS(\"this is "+word+"\")\n", 1)
	if changed == string(text) {
		t.Fatalf("%s has no line %q", at.file, at.after)
	}
	must.NoError(t, os.Rename(path, path+".orig"))
	must.NoError(t, os.WriteFile(path, []byte(changed), 0o644))
}

func (c checkout) restoreFile(t *testing.T, at source) {
	t.Helper()
	path := filepath.Join(c.dir, at.file)
	if err := os.Rename(path+".orig", path); err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
}

// restore takes all changes back.
func (c checkout) restore(t *testing.T) {
	t.Helper()
	for _, at := range []source{apiServer, kubelet, scheduler} {
		c.restoreFile(t, at)
	}
}
