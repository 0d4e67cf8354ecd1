// Package kube is how everything above it talks to an API server: a client
// from a kubeconfig, objects applied from YAML, and waits that follow a watch.
package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FieldManager owns, on the API server, every field that we apply.
const FieldManager = "kube-bootstrap"

// NoAnswer marks the error of a request in a Check as unanswered, unless the
// error is itself a result: the object or the kubeconfig does not exist.
func NoAnswer(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return step.NoAnswer(err)
}

// Connect returns how to reach and be known to an API server. It is called
// when a step runs: the kubeconfig need not exist when the plan is made.
type Connect func() (*rest.Config, error)

// Kubeconfig connects by the kubeconfig file at path.
func Kubeconfig(path string) Connect {
	return func() (*rest.Config, error) {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
		}
		// We send a few dozen requests once; the default of five a second
		// would only make them queue.
		config.QPS = -1
		return config, nil
	}
}

// Client returns a typed client.
func (c Connect) Client() (kubernetes.Interface, error) {
	config, err := c()
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfig(config)
}
