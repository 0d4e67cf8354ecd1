// Package kube talks to an API server: a client from a kubeconfig,
// server-side apply of YAML, and waits that follow a watch.
package kube

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// FieldManager owns every field that kube-bootstrap applies.
const FieldManager = "kube-bootstrap"

// NoAnswer marks the error of a request in a Check as unanswered, unless the
// error is itself a result: the object or the kubeconfig does not exist.
func NoAnswer(err error) error {
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return step.NoAnswer(err)
}

// IgnoreNotFound returns nil if err means that an object does not exist, else err.
func IgnoreNotFound(err error) error {
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// Connect returns the address and credentials of an API server. A step calls
// it when it runs, because the kubeconfig may not exist yet when the plan is
// made.
type Connect func() (*rest.Config, error)

// Kubeconfig returns a Connect that reads the kubeconfig file at path.
func Kubeconfig(path string) Connect {
	return func() (*rest.Config, error) {
		if _, err := os.Stat(path); err != nil {
			return nil, err
		}
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
		}
		return asKubeBootstrap(config), nil
	}
}

// KubeconfigOf returns a Connect to the current cluster of a kubeconfig.
func KubeconfigOf(kubeconfig []byte) Connect {
	return func() (*rest.Config, error) {
		config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
		if err != nil {
			return nil, err
		}
		return asKubeBootstrap(config), nil
	}
}

// Token returns a Connect to the API server at address, which is a host and a port,
// with a bearer token. The certificate of the API server must come from one of the
// authorities in ca, in PEM.
func Token(address, token string, ca []byte) Connect {
	return func() (*rest.Config, error) {
		return asKubeBootstrap(&rest.Config{
			Host: "https://" + address, BearerToken: token,
			TLSClientConfig: rest.TLSClientConfig{CAData: ca},
		}), nil
	}
}

// asKubeBootstrap returns config with the name of kube-bootstrap for the audit log,
// and without a limit of requests. The default of five requests a second would delay
// the few dozen requests of one Apply. It uses no proxy but the `proxy-url` of a kubeconfig.
func asKubeBootstrap(config *rest.Config) *rest.Config {
	config.UserAgent, config.QPS = FieldManager, -1
	if config.Proxy == nil {
		config.Proxy = noProxy
	}
	return config
}

// Client returns a typed client. It asks for protobuf, which costs client and server less
// than JSON.
func (c Connect) Client() (kubernetes.Interface, error) {
	config, err := c()
	if err != nil {
		return nil, err
	}
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	client, err := clientFor(config)
	if err != nil {
		return nil, err
	}
	return kubernetes.NewForConfigAndClient(config, client)
}

// Do calls do with a client.
func (c Connect) Do(do func(kubernetes.Interface) error) error {
	client, err := c.Client()
	if err != nil {
		return err
	}
	return do(client)
}

// Ask is Do for a request with an answer.
func Ask[T any](api Connect, ask func(kubernetes.Interface) (T, error)) (answer T, err error) {
	err = api.Do(func(client kubernetes.Interface) error {
		answer, err = ask(client)
		return err
	})
	return answer, err
}
