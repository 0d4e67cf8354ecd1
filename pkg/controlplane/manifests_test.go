package controlplane

import (
	"errors"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/hosttest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestManifests(t *testing.T) {
	c := fresh(t)
	key, err := os.ReadFile("testdata/encryption.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Files.Write(encryptionFile, key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(pods(c).WriteAPIServer().Apply(t.Context()),
		pods(c).WriteControllers().Apply(t.Context())); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		data, err := c.Files.Read(ManifestDir + "/" + name + ".yaml")
		if err != nil {
			t.Fatal(err)
		}
		var pod corev1.Pod
		if err := yaml.UnmarshalStrict(data, &pod); err != nil || pod.Spec.Containers[0].Command[0] != name {
			t.Errorf("%s: %v", name, err)
		}
		hosttest.Golden(t, name+".yaml", data)
	}
}

// TestNobodyIsAsked: a node that was removed knows the address in the answer.
func TestNobodyIsAsked(t *testing.T) {
	config, err := clientcmd.Load(nobody)
	if err != nil || config.Clusters["nobody"].Server != node.Nobody {
		t.Errorf("%v, %v", config, err)
	}
}

func flagsOf(t *testing.T, s StaticPods, component string) []string {
	t.Helper()
	flags, err := s.flags(component)
	if err != nil {
		t.Fatal(err)
	}
	return flags
}

// TestTheFlagsNameFilesThatStepsWrite compares the paths in the flags with the files.
func TestTheFlagsNameFilesThatStepsWrite(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	s := pods(c)
	if err := s.WriteAPIServer().Apply(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, p := range []component{s.apiserver(nil), s.manager(), s.scheduler()} {
		for _, flag := range flagsOf(t, s, p.name) {
			if _, path, _ := strings.Cut(flag, "="); strings.HasPrefix(path, Dir+"/") && !c.Files.Exists(path) {
				t.Errorf("%s: no step writes the file of %s", p.name, flag)
			}
		}
	}
}

func TestConfigFilesAreWhatTheAPIServerReads(t *testing.T) {
	c := fresh(t)
	issue(t, c)
	encryption, _, err := readEncryption(c.Files)
	if err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]struct {
		data []byte
		into any
	}{
		"encryption":     {encryption, &apiserverv1.EncryptionConfiguration{}},
		"audit":          {auditPolicy, &auditv1.Policy{}},
		"authentication": {authentication, &apiserverv1.AuthenticationConfiguration{}},
	} {
		if err := yaml.UnmarshalStrict(file.data, file.into); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The pods tell by a hash what they read, which an earlier step of the same
// plan writes.
func TestStepsMadeBeforeTheCertificatesWriteTheSamePods(t *testing.T) {
	c := fresh(t)
	early := []step.Step{pods(c).WriteAPIServer(), pods(c).WriteControllers()}
	issue(t, c)
	for _, s := range early {
		if err := s.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for _, s := range []step.Step{pods(c).WriteAPIServer(), pods(c).WriteControllers()} {
		if d, err := s.Check(t.Context()); err != nil || len(d) > 0 {
			t.Errorf("%s: %q, %v", s.Name, d, err)
		}
	}
}
