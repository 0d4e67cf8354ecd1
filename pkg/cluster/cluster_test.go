package cluster

import (
	"context"
	"errors"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/driver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestMembers(t *testing.T) {
	o := Options{Name: "kube", Masters: 1, Workers: 2, Subnet: DefaultSubnet}
	want := []string{"kube-master-1 10.192.0.2", "kube-worker-1 10.192.0.10", "kube-worker-2 10.192.0.11"}
	if got := shown(o.members()); !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
}

func shown(all []member) (text []string) {
	for _, m := range all {
		text = append(text, m.name+" "+m.addr.String())
	}
	return text
}

func TestWorkersKeepTheirAddressWhenAMasterJoins(t *testing.T) {
	one := Options{Name: "k", Masters: 1, Workers: 1, Subnet: DefaultSubnet}.members()
	three := Options{Name: "k", Masters: 3, Workers: 1, Subnet: DefaultSubnet}.members()
	if one[1].name != three[3].name || one[1].addr != three[3].addr {
		t.Errorf("worker moved from %v to %v", one[1], three[3])
	}
}

// Nodes that are there keep their address, also those that nobody names.
func TestSettle(t *testing.T) {
	there := func(name, addr string, spec Spec) docker.FoundMachine {
		return docker.FoundMachine{Name: name, Addr: netip.MustParseAddr(addr), Labels: spec.label()}
	}
	o := Options{Name: "k", Subnet: DefaultSubnet, Nodes: []Spec{{Role: Worker}, {Role: Worker, Name: "gpu"}, {Role: Master}, {Role: Worker}}}
	got := shown(o.settle([]docker.FoundMachine{
		there("k-gpu", "10.192.0.10", Spec{Name: "gpu", Role: Worker}),
		there("k-more", "10.192.0.12", Spec{Name: "more", Role: Worker}),
	}))
	want := []string{"k-master-1 10.192.0.2", "k-worker-1 10.192.0.11", "k-gpu 10.192.0.10", "k-worker-2 10.192.0.13", "k-more 10.192.0.12"}
	if !slices.Equal(got, want) {
		t.Errorf("members %q, want %q", got, want)
	}
}

func TestSpecIsReadBackFromItsHost(t *testing.T) {
	spec := Spec{Name: "gpu", Role: Worker, NanoCPUs: 15e8, Args: []string{"--node-label=a=b"}}
	if got := specOf(docker.FoundMachine{Name: "k-gpu", Labels: spec.label()}); !reflect.DeepEqual(got, spec) {
		t.Errorf("got %+v, want %+v", got, spec)
	}
	if got := specOf(docker.FoundMachine{Name: "other"}); got.Role != Bare {
		t.Errorf("a host without a label is taken for a %s", got.Role)
	}
}

func TestEveryHostImageHasASetting(t *testing.T) {
	if got, want := slices.Sorted(slices.Values(config.HostImages)), slices.Sorted(maps.Keys(variants)); !slices.Equal(got, want) {
		t.Errorf("config names %q, there are %q", got, want)
	}
}

func TestOptionsNameEveryProblem(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	tests := map[string]struct {
		options Options
		problem string
	}{
		"name":          {Options{Name: "Kube_1"}, "cluster-name"},
		"node name":     {Options{Nodes: []Spec{{Role: Master}, {Role: Worker, Name: "A"}}}, "cluster-name"},
		"no master":     {Options{Nodes: []Spec{{Role: Worker}}}, "cluster-size"},
		"same name":     {Options{Nodes: []Spec{{Role: Master}, {Role: Worker, Name: "master-1"}}}, "cluster-nodes"},
		"node image":    {Options{Nodes: []Spec{{Role: Master, HostImage: "x"}}}, "host-image"},
		"host name":     {Options{Hosts: []string{"-a"}}, "cluster-name"},
		"masters":       {Options{Masters: 6}, "cluster-size"},
		"workers":       {Options{Workers: -1}, "cluster-size"},
		"image":         {Options{HostImage: "docker-1"}, "host-image"},
		"not a network": {Options{Subnet: netip.MustParsePrefix("10.1.2.3/16")}, "cluster-subnet"},
		"IPv6":          {Options{Subnet: netip.MustParsePrefix("fd00::/64")}, "cluster-subnet"},
		"too small":     {Options{Subnet: netip.MustParsePrefix("10.1.0.0/29"), Workers: 3}, "cluster-subnet"},
		"no bundle":     {Options{Bundle: "/does/not/exist"}, "bundle"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := test.options.withDefaults()
			problems := step.Problems(err)
			if len(problems) != 1 || problems[0].Name != test.problem || problems[0].Remedy == "" {
				t.Errorf("got %v, want one problem %q with a remedy", err, test.problem)
			}
		})
	}
	if _, err := (Options{Workers: 3}).withDefaults(); err != nil {
		t.Errorf("defaults: %v", err)
	}
}

func TestAllProblemsAreToldAtOnce(t *testing.T) {
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	_, err := Options{Name: "A", Workers: -1, HostImage: "x"}.withDefaults()
	if n := len(step.Problems(err)); n != 3 {
		t.Errorf("%d problems told, want 3: %v", n, err)
	}
}

func TestEngineThatDoesNotAnswer(t *testing.T) {
	options := Options{Engine: docker.Choice{Address: "unix://" + filepath.Join(t.TempDir(), "none.sock")}, CacheDir: t.TempDir()}
	_, err := Hosts(context.Background(), options, nil)
	problems := step.Problems(err)
	if len(problems) != 1 || problems[0].Name != "engine" {
		t.Errorf("got %v, want the problem engine", err)
	}
}

func TestOlderThan(t *testing.T) {
	for version, want := range map[string]bool{
		"19.3.1": true, "20.10.24+dfsg1": false, "20.9": true, "28.5.2": false, "library-import": false, "": false,
	} {
		if olderThan(version, 20, 10) != want {
			t.Errorf("olderThan(%q) is not %v", version, want)
		}
	}
	problems := step.Problems(errors.Join(engineFit("19.03.15")...))
	if len(problems) != 1 || problems[0].Name != "engine-version" || !strings.Contains(problems[0].Text, "19.03.15") {
		t.Errorf("an engine that is too old: %v", problems)
	}
}

func TestRelay(t *testing.T) {
	var got []step.Event
	r := &relay{emit: func(e step.Event) { got = append(got, e) }}
	// Pieces as a stream cuts them, a line that is no event, and no last newline.
	for _, piece := range []string{
		`{"at":"2026-01-02T03:04:05Z","row":1,"step":"start etcd","ki`,
		`nd":"progress","message":"load","bytes":5,"total":10}` + "\nwarning: old kernel\n",
		`{"row":2,"step":"start flannel","kind":"failed","error":"start flannel: no lease"}`,
	} {
		if _, err := r.Write([]byte(piece)); err != nil {
			t.Fatal(err)
		}
	}
	r.flush()
	if len(got) != 2 || got[0].Step != "start etcd" || got[0].Bytes != 5 || got[0].Total != 10 || got[0].At.IsZero() {
		t.Fatalf("events %+v", got)
	}
	if got[1].Kind != step.Failed || got[1].Err == nil || got[1].Err.Error() != "start flannel: no lease" {
		t.Errorf("failure %+v", got[1])
	}
	err := r.explain(&driver.ExitError{Node: "kube-master-1", Code: 1})
	if !strings.HasPrefix(err.Error(), "kube-master-1: ") || !strings.Contains(err.Error(), "no lease") {
		t.Errorf("explained as %q", err)
	}
}

func TestSharedBundleFollowsItsSource(t *testing.T) {
	dir := t.TempDir()
	bundle := filepath.Join(dir, "b.tar.zst")
	write := func(content string) {
		t.Helper()
		os.Remove(bundle)
		if err := os.WriteFile(bundle, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f := &fleet{docker: &docker.Engine{Address: docker.DefaultAddress}, Options: Options{Name: "k", CacheDir: filepath.Join(dir, "cache"), Bundle: bundle}}
	for _, content := range []string{"one", "another"} {
		write(content)
		shared := f.shared()
		ctx := context.Background()
		if diff, err := shared.Check(ctx); err != nil || len(diff) == 0 {
			t.Fatalf("check before: %v %v", diff, err)
		}
		if err := shared.Apply(ctx); err != nil {
			t.Fatal(err)
		}
		if diff, err := shared.Check(ctx); err != nil || len(diff) > 0 {
			t.Fatalf("check after: %v %v", diff, err)
		}
		got, err := os.ReadFile(filepath.Join(f.sharedDir(), bundleName))
		if err != nil || string(got) != content {
			t.Errorf("hosts see %q, %v; want %q", got, err, content)
		}
	}
}

func TestImageReferenceFollowsItsContent(t *testing.T) {
	v := variants["docker-28.5"]
	before := v.reference("docker-28.5")
	v.Files = slices.Clone(v.Files)
	v.Files[0].Content += "\n"
	if v.reference("docker-28.5") == before {
		t.Error("a changed entry script gives the same image")
	}
	if before != variants["docker-28.5"].reference("docker-28.5") {
		t.Error("the reference is not stable")
	}
}

// The front keeps its address, however many nodes there are.
func TestNoNodeHasTheAddressOfTheFront(t *testing.T) {
	front := addrAt(DefaultSubnet, frontAddr)
	for _, m := range (Options{Name: "k", Masters: maxMasters, Workers: 20, Subnet: DefaultSubnet}).members() {
		if m.addr == front {
			t.Errorf("%s has %s", m.name, m.addr)
		}
	}
	small := Options{Name: "k", Masters: 1, HostImage: DefaultHostImage, Subnet: netip.MustParsePrefix("10.192.0.0/29")}
	if problemName(small.validate()) != "cluster-subnet" {
		t.Error("a subnet without room for the front is accepted")
	}
}

func TestKubeconfigPointsAtTheServer(t *testing.T) {
	const given = "apiVersion: v1\nkind: Config\nclusters:\n- name: kubernetes\n  cluster: {server: 'https://127.0.0.1:7443'}\n"
	got, err := server{url: "https://127.0.0.1:33001"}.kubeconfig([]byte(given))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"server: https://127.0.0.1:33001", "tls-server-name: kubernetes"} {
		if !strings.Contains(string(got), want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}
