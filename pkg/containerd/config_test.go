package containerd

import (
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/subnet"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const pause = "registry.k8s.io/pause:3.10.2"

func TestMergeConfig(t *testing.T) {
	cases := map[string]struct {
		before string
		major  uint
		wanted wanted
		after  string
		diff   int
	}{
		"docker-ce's default": {
			before: `disabled_plugins = ["cri", "aufs"]`, major: 1, wanted: wanted{SandboxImage: pause},
			after: `version = 2
disabled_plugins = ["io.containerd.snapshotter.v1.aufs"]
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pause + `"`, diff: 3,
		},
		"version 1": {
			before: `version = 1
root = "/srv/containerd"
required_plugins = ["tasks-service"]
[plugins.cri.registry.mirrors."docker.io"]
endpoint = ["https://mirror"]
[plugins.scheduler]
startup_delay = "1s"`, major: 2, wanted: wanted{SandboxImage: pause},
			after: `version = 2
root = "/srv/containerd"
required_plugins = ["io.containerd.service.v1.tasks-service"]
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pause + `"
[plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
endpoint = ["https://mirror"]
[plugins."io.containerd.gc.v1.scheduler"]
startup_delay = "1s"`, diff: 2,
		},
		"none, containerd 1": {
			major: 1, wanted: wanted{SandboxImage: pause, SystemdCgroup: true, RestrictOOM: true},
			after: `version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pause + `"
restrict_oom_score_adj = true
[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
options.SystemdCgroup = true`, diff: 4,
		},
		"none, containerd 2": {
			major: 2, wanted: wanted{SandboxImage: pause},
			after: `version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "` + pause + `"`, diff: 1,
		},
		"Debian": {
			before: `version = 2
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/usr/lib/cni"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"`, major: 1, wanted: wanted{SandboxImage: pause},
			after: `version = 2
[plugins."io.containerd.grpc.v1.cri"]
sandbox_image = "` + pause + `"
[plugins."io.containerd.grpc.v1.cri".cni]
bin_dir = "/opt/cni/bin"
conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.internal.v1.opt"]
path = "/var/lib/containerd/opt"`, diff: 2,
		},
		"version 3, the owner's own runtime": {
			before: `version = 3
root = "/srv/containerd"
disabled_plugins = ["io.containerd.cri.v1.runtime"]
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/usr/lib/cni"]
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/usr/bin/nvidia-container-runtime", SystemdCgroup = true}`, major: 2, wanted: wanted{SandboxImage: pause},
			after: `version = 3
root = "/srv/containerd"
disabled_plugins = []
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "` + pause + `"
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = ["/opt/cni/bin", "/usr/lib/cni"]
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "nvidia"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.nvidia]
runtime_type = "io.containerd.runc.v2"
options = {BinaryName = "/usr/bin/nvidia-container-runtime", SystemdCgroup = false}`, diff: 4,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			got, diff, err := mergeConfig([]byte(c.before), c.major, c.wanted)
			if err != nil || len(diff) != c.diff {
				t.Fatalf("got diff %q, %v", diff, err)
			}
			if !reflect.DeepEqual(parse(t, got), parse(t, []byte(c.after))) {
				t.Errorf("got\n%s", got)
			}
			if _, again, err := mergeConfig(got, c.major, c.wanted); err != nil || len(again) > 0 {
				t.Errorf("does not converge: %q, %v", again, err)
			}
		})
	}
}

func parse(t *testing.T, data []byte) map[string]any {
	t.Helper()
	m := map[string]any{}
	must.NoError(t, toml.Unmarshal(data, &m))
	return m
}

func TestConfigThatCannotBeRead(t *testing.T) {
	for _, bad := range []string{"version = = 2", "version = 1\n[plugins.mine]\na = 1", `disabled_plugins = ["mine"]`} {
		_, _, err := mergeConfig([]byte(bad), 2, wanted{})
		if problems := step.Problems(err); len(problems) != 1 || problems[0].Name != "containerd-config" {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

func TestCNIConfig(t *testing.T) {
	got, err := cniConfig(netip.MustParsePrefix("10.1.7.1/24"), 1450)
	must.NoError(t, err)
	hosttest.Golden(t, "10-kube-bootstrap.conflist", got)
}

func TestUpperHalf(t *testing.T) {
	for subnet, want := range map[string]string{
		"10.1.7.1/24": "10.1.7.128 10.1.7.254", "10.1.0.1/20": "10.1.8.0 10.1.15.254",
		"10.255.255.129/25": "10.255.255.192 10.255.255.254",
	} {
		first, last, err := upperHalf(netip.MustParsePrefix(subnet))
		if got := first.String() + " " + last.String(); got != want || err != nil {
			t.Errorf("%s: got %s, %v", subnet, got, err)
		}
	}
	if _, _, err := upperHalf(netip.MustParsePrefix("10.1.7.1/30")); err == nil {
		t.Error("a /30 has no room for pods")
	}
}

func TestWriteCNI(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	var noLease error = os.ErrNotExist
	s := WriteCNI(files, func() (subnet.Lease, error) {
		return subnet.Lease{Subnet: netip.MustParsePrefix("10.1.7.1/24"), MTU: 1450}, noLease
	})
	if diff, err := s.Check(t.Context()); err != nil || len(diff) != 1 {
		t.Errorf("without a lease: %v, %v", diff, err)
	}
	noLease = nil
	for range 2 {
		must.NoError(t, s.Apply(t.Context()))
		if diff, err := s.Check(t.Context()); err != nil || len(diff) != 0 {
			t.Errorf("after Apply: %v, %v", diff, err)
		}
	}
	for range 2 {
		must.NoError(t, s.Undo(t.Context()))
	}
	if files.Exists("/etc") {
		t.Error("directories made for the config are left")
	}
}

func TestCNIProblems(t *testing.T) {
	files := host.Files{Root: t.TempDir()}
	for _, name := range []string{
		"05-calico.conflist", "10-kube-bootstrap.conflist", "87-podman.conflist", "00-notes.txt",
	} {
		must.NoError(t, files.Write(cniConfDir+"/"+name, nil, 0o644))
	}
	problems := step.Problems(CNIProblems(files, true))
	if len(problems) != 1 || !strings.Contains(problems[0].Text, "05-calico") {
		t.Errorf("got %v", problems)
	}
	if problems := step.Problems(CNIProblems(files, false)); len(problems) != 3 {
		t.Errorf("beside another plugin's: got %v", problems)
	}
}

// TestPathsOfCRI: each version of the file has the settings of CRI elsewhere.
func TestPathsOfCRI(t *testing.T) {
	for version, want := range map[int64]string{
		2: "plugins io.containerd.grpc.v1.cri sandbox_image, plugins io.containerd.grpc.v1.cri registry mirrors",
		3: "plugins io.containerd.cri.v1.images pinned_images sandbox, plugins io.containerd.cri.v1.images registry " +
			"mirrors",
	} {
		c := configFile{root: map[string]any{"version": version}}
		if got := strings.Join(c.sandboxImage(), " ") + ", " + strings.Join(c.registry("mirrors"), " "); got != want {
			t.Errorf("version %d: got %s", version, got)
		}
	}
}
