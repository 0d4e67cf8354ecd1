package kube

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

const two = `apiVersion: v1
kind: Namespace
metadata: {name: one}
---
# a comment alone is no object
---
apiVersion: v1
kind: List
items:
- {apiVersion: apps/v1, kind: Deployment, metadata: {name: two, namespace: one}}
`

func TestObjects(t *testing.T) {
	got, err := Objects([]byte(two))
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if title(got[0]) != "Namespace one" || title(got[1]) != "Deployment one/two" || rank(got[0]) >= rank(got[1]) {
		t.Errorf("got %s, %s", title(got[0]), title(got[1]))
	}
	for _, bad := range []string{"kind: Pod", "a: [", "- a", "apiVersion: v1\nkind: List\nitems:\n- {kind: Pod}\n"} {
		if _, err := Objects([]byte(bad)); err == nil || !strings.HasPrefix(err.Error(), "document 1: ") {
			t.Errorf("%q: got %v", bad, err)
		}
	}
}

// TestMissingWithoutServer: on a host without a kubeconfig all objects are
// missing. If the server does not answer, the state is unknown.
func TestMissingWithoutServer(t *testing.T) {
	objects, err := Objects([]byte(two))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "admin.conf")
	diff, err := Missing(t.Context(), Kubeconfig(path), objects)
	if err != nil || diff.String() != "apply 2 objects" {
		t.Errorf("got %v, %v", diff, err)
	}
	config := clientcmdapi.NewConfig()
	config.Clusters["x"] = &clientcmdapi.Cluster{Server: "http://127.0.0.1:1"}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "x"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		t.Fatal(err)
	}
	diff, err = Missing(t.Context(), Kubeconfig(path), objects)
	if len(diff) > 0 || !step.IsUnanswered(err) {
		t.Errorf("nobody listens: got %v, %v", diff, err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err = Missing(t.Context(), Kubeconfig(path), objects); err == nil {
		t.Error("a damaged kubeconfig was reported as missing")
	}
}

// Await outlives a watch that breaks, and ends with the first object that holds.
func TestAwait(t *testing.T) {
	opened := 0
	open := func(context.Context) (watch.Interface, error) {
		opened++
		if opened == 1 {
			return nil, errors.New("refused")
		}
		w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 2})
		w.Add(pod("first"))
		if opened == 2 {
			w.Stop()
			return w, nil
		}
		w.Modify(pod("second"))
		return w, nil
	}
	if err := Await(t.Context(), open, called("second"), nil); err != nil || opened != 3 {
		t.Errorf("opened %d times, %v", opened, err)
	}
}

func TestAwaitGivesUpWithTheLastAnswer(t *testing.T) {
	open := func(context.Context) (watch.Interface, error) {
		w := watch.NewFakeWithOptions(watch.FakeOptions{ChannelSize: 1})
		w.Add(pod("first"))
		return w, nil
	}
	err := Await(step.WithLimit(t.Context(), 50*time.Millisecond), open, called("second"),
		func() string { return "because" })
	if err == nil || err.Error() != "not within 50ms: it is first\nbecause" {
		t.Errorf("got %v", err)
	}
}

// The first text is an answer of a real API server.
func TestWhatTheServerRefusesForEverIsNotRetried(t *testing.T) {
	status := func(code int32, message string) error {
		return &apierrors.StatusError{ErrStatus: metav1.Status{Code: code, Message: message}}
	}
	wrongType := status(500, `failed to create typed patch object (kube-system/coredns; apps/v1, Kind=Deployment): `+
		`.spec.template.metadata.annotations.kube-bootstrap.dev/config: expected string, got &value.valueUnstructured{Value:9439522927487268}`)
	for _, err := range []error{wrongType, apierrors.NewBadRequest("x"), apierrors.NewUnauthorized("x")} {
		if !permanent(err) {
			t.Errorf("%v is retried", err)
		}
	}
	services := schema.GroupResource{Resource: "services"}
	for _, err := range []error{
		status(500, "etcdserver: leader changed"), apierrors.NewForbidden(services, "a", nil),
		apierrors.NewNotFound(services, "a"),
	} {
		if permanent(err) {
			t.Errorf("%v is not retried", err)
		}
	}
}

func pod(name string) *corev1.Pod { return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func called(name string) func(runtime.Object) error {
	return func(o runtime.Object) error {
		if got := o.(*corev1.Pod).Name; got != name {
			return errors.New("it is " + got)
		}
		return nil
	}
}
