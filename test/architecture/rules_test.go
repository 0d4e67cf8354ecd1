package architecture

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestTheTreeKeepsTheRules(t *testing.T) {
	found, err := Violations("../..")
	must.NoError(t, err)
	for _, v := range found {
		t.Error(v)
	}
}

// writeLarge writes a package that is too large, with a receiver of too many
// methods.
func writeLarge(t *testing.T, dir string) {
	t.Helper()
	must.NoError(t, os.MkdirAll(dir, 0o755))
	methods := "// Package kubelet is too large.\npackage kubelet\n\ntype Kubelet struct{}\n"
	for i := range maxMethods + 1 {
		methods += fmt.Sprintf("\nfunc (k *Kubelet) m%d() {}\n", i)
	}
	methods += "\ntype pod struct{ *Kubelet }\n\ntype holder struct{ kubelet *Kubelet }\n"
	for i := range maxPackageLines/maxFileLines + 2 {
		text := methods
		if i > 0 {
			text = "package kubelet\n" + strings.Repeat("\n", maxFileLines-1)
		}
		must.Write(t, filepath.Join(dir, fmt.Sprintf("part%d.go", i)), text)
	}
}

// TestABadTreeIsSeen makes sure that the rules bite: each line of want is one
// breach in testdata/bad.
func TestABadTreeIsSeen(t *testing.T) {
	root := filepath.Join(t.TempDir(), "bad")
	must.NoError(t, os.CopyFS(root, os.DirFS("testdata/bad")))
	long := "package etcd\n" + strings.Repeat("\n", maxFileLines)
	must.Write(t, filepath.Join(root, "pkg/etcd/long.go"), long)
	function := "package etcd\n\nfunc endless() {\n" + strings.Repeat("\n", maxFunctionLines) + "}\n"
	must.Write(t, filepath.Join(root, "pkg/etcd/function.go"), function)
	writeLarge(t, filepath.Join(root, "pkg/kubelet"))
	found, err := Violations(root)
	must.NoError(t, err)
	want := []string{
		"pkg/cluster/session/session.go: imports pkg/docker; pkg/cluster/session must fit every kind of node",
		"pkg/etcd/etcd.go: imports github.com/moby/moby/client; " +
			"only pkg/docker and pkg/cluster/containers/machines may",
		"pkg/etcd/etcd.go: imports github.com/vishvananda/netlink; only pkg/host may",
		"pkg/etcd/etcd.go: imports os/exec; only pkg/host may",
		"pkg/etcd/etcd.go: imports pkg/flannel, which is not below pkg/etcd",
		"pkg/etcd/etcd.go: imports pkg/plan, which is not below pkg/etcd",
		"pkg/etcd/etcd.go: fmt.Println; only cmd prints or exits",
		"pkg/etcd/etcd.go: os.Exit; only cmd prints or exits",
		"pkg/etcd/function.go: endless has 82 lines; cut it, 80 are enough",
		"pkg/etcd/long.go: 401 lines; cut it, 400 are enough",
		"pkg/flannel: 2 package comments (pkg/flannel/a.go, pkg/flannel/b.go); keep one",
		"pkg/flannel/netns_root_test.go: tests that need root or Docker are in files *_root_test.go with //go:build " +
			"root; only one of both is true",
		"pkg/flannel/tagged_test.go: tests that need root or Docker are in files *_root_test.go with //go:build " +
			"root; only one of both is true",
		"pkg/kubelet.Kubelet has 31 methods; split it, 30 are enough",
		"pkg/kubelet.pod has 31 methods; split it, 30 are enough",
		"pkg/kubelet: 2870 lines; split it, 2500 are enough for a package",
		"pkg/step/step.go: imports pkg/config, which is not below pkg/step",
		"pkg/util/util.go: a package called util; name it for what it is",
		"pkg/util/util.go: pkg/util has no layer; give it one in test/architecture and docs/architecture.md",
		"pkg/util: no package comment; say in one file what it is for",
	}
	slices.Sort(want)
	if !slices.Equal(found, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(found, "\n"), strings.Join(want, "\n"))
	}
}

// TestThePictureIsTrue: every package of the tree stands in the picture, and
// the picture names no package that is gone.
func TestThePictureIsTrue(t *testing.T) {
	page := must.Read(t, "../../docs/architecture.md")
	dirs, err := filepath.Glob("../../pkg/*")
	must.NoError(t, err)
	for _, dir := range dirs {
		if name := "pkg/" + filepath.Base(dir); !strings.Contains(string(page), name+" ") {
			t.Errorf("docs/architecture.md does not name %s", name)
		}
	}
	for line := range strings.Lines(string(page)) {
		if name, _, _ := strings.Cut(line, " "); strings.HasPrefix(name, "pkg/") {
			if _, err := os.Stat("../../" + name); err != nil {
				t.Errorf("docs/architecture.md names %s: %v", name, err)
			}
		}
	}
}

func TestThePartsOfAPackageHaveAnOrder(t *testing.T) {
	for _, test := range []struct {
		inner, dir string
		want       bool
	}{
		{"pkg/cluster/topology", "pkg/cluster/session", true},
		{"pkg/cluster/session", "pkg/cluster/topology", false},
		{"pkg/cluster/tools", "pkg/cluster/suite", false},
		{"pkg/cluster/session", "pkg/cluster/containers", true},
		{"pkg/cluster/containers", "pkg/cluster/session", false},
		{"pkg/cluster/containers", "pkg/cluster/containers/machines", false},
		{"pkg/cluster", "pkg/cluster/containers/snapshot", false},
		{"pkg/docker", "pkg/cluster/topology", true},
		{"pkg/plan", "pkg/cluster", false},
		{"pkg/host", "pkg/host/hosttest", true},
		{"pkg/host", "pkg/host/links", true},
		{"pkg/host/links", "pkg/host/netfilter", false},
		{"pkg/host/links", "pkg/host", false},
		{"pkg/host/process", "pkg/host/initsystem", true},
	} {
		if got := below(test.inner, test.dir); got != test.want {
			t.Errorf("%s may import %s: %t, want %t", test.dir, test.inner, got, test.want)
		}
	}
}
