package parts

import (
	"context"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// WithEtcd calls do with an etcd client of this control plane.
func WithEtcd(ctx context.Context, h *local.Host, do func(*clientv3.Client) error) error {
	client, err := Etcd(h).Client(ctx)
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}

// FlannelCertificate is the step with which a worker requests flannel's
// certificate from a control plane, which admits the worker at the same time.
func FlannelCertificate(h *local.Host) step.Step {
	return join.Flannel{Joining: h.Join, User: etcd.HostUser(h.Config.HostName)}.Fetch()
}

// ControlPlaneNames lists the control planes in etcd.
func ControlPlaneNames(h *local.Host) func(context.Context) ([]string, error) {
	return func(ctx context.Context) (names []string, err error) {
		err = WithEtcd(ctx, h, func(client *clientv3.Client) error {
			listed, err := etcd.Listed(ctx, client)
			for _, e := range listed {
				names = append(names, e.Name)
			}
			return err
		})
		return names, err
	}
}
