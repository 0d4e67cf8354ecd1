package containerd

import (
	"slices"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestDirectoriesOfTheUser(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	if got := FindDirs(files); got != (Dirs{"/var/lib/containerd", "/run/containerd"}) {
		t.Errorf("without a config: %v", got)
	}
	must.Write(t, files.Path(configPath), "= broken")
	if got := FindDirs(files); got.Root != "/var/lib/containerd" {
		t.Errorf("with a broken config: %v", got)
	}
	must.Write(t, files.Path(configPath), "root = '/srv/containerd'\nstate = '/run/other'\n")
	dirs := FindDirs(files)
	for path, want := range map[string]string{
		criRoot + "/sandboxes":                                 "/srv/containerd/io.containerd.grpc.v1.cri/sandboxes",
		"/run/containerd/io.containerd.grpc.v1.cri/containers": "/run/other/io.containerd.grpc.v1.cri/containers",
		"/run/containerd/s":                                    "/run/containerd/s",
		"/var/lib/cni":                                         "/var/lib/cni",
	} {
		if got := dirs.at(path); got != want {
			t.Errorf("%s is at %s, want %s", path, got, want)
		}
	}
}

// TestWhatPodsLeaveInAnotherRoot: the record has the paths of the default directories.
func TestWhatPodsLeaveInAnotherRoot(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	must.Write(t, files.Path(configPath), "root = '/srv/containerd'\n")
	const shims = "/io.containerd.sandbox.controller.v1.shim/k8s.io"
	must.Write(t, files.Path("/srv/containerd"+shims+"/of-the-user"), "")
	existed := Pods{Files: files}.existing()
	if !slices.Equal(existed, []string{defaultRoot + shims}) {
		t.Fatalf("before: %q", existed)
	}
	record := before{Images: []string{}, Paths: existed}
	must.NoError(t, record.valid())
	for _, path := range []string{
		"/srv/containerd" + shims + "/pod", "/srv/containerd/io.containerd.grpc.v1.cri/sandboxes/pod",
		"/etc/cni/net.d/10-user.conflist", "/run/nri/nri.sock",
	} {
		must.Write(t, files.Path(path), "")
	}
	paths := slices.Concat(podPaths, criPaths)
	must.NoError(t, removePaths(files, paths, FindDirs(files), record))
	for path, want := range map[string]bool{
		"/srv/containerd" + shims: true, "/srv/containerd" + shims + "/pod": false,
		"/srv/containerd/io.containerd.grpc.v1.cri": false,
		"/etc/cni/net.d/10-user.conflist":           true, "/run/nri": false,
	} {
		if files.Exists(path) != want {
			t.Errorf("%s exists: %t", path, !want)
		}
	}
}
