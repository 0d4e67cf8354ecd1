package parts

import (
	"k8s.io/client-go/rest"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
)

// Anywhere returns a node that uses any ready API server, because the API
// server of this host may have stopped.
func Anywhere(h *local.Host, name string) node.Node {
	one := Node(h, controlplane.AdminConf)
	one.Name, one.API = name, AnyServer(h, controlplane.AdminConf)
	return one
}

// AnyServer connects by a kubeconfig of this control plane to whichever API
// server is ready.
func AnyServer(h *local.Host, kubeconfig string) kube.Connect {
	own := kube.Kubeconfig(kubeconfig)
	return func() (*rest.Config, error) {
		config, err := own()
		if err == nil {
			config.Host = local.BalancedAPI(h)
		}
		return config, err
	}
}
