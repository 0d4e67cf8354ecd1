package upgrades

import (
	"context"

	"k8s.io/client-go/kubernetes"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// record is the step that writes the new version into the recorded settings of the cluster. `cluster up` compares them
// with its own.
func (r run) record() step.Step {
	return step.Always("record-version", "record the version of the cluster", func(ctx context.Context) error {
		release, err := kube.Ask(r.api, func(client kubernetes.Interface) (string, error) {
			is, err := client.Discovery().ServerVersion()
			if err != nil {
				return "", err
			}
			return is.GitVersion, nil
		})
		if err != nil {
			return err
		}
		then, err := r.session.UpRecord(ctx)
		if err != nil || then == nil {
			return err
		}
		then.Kubernetes = release
		then.Settings.Change("kubernetesVersion", release)
		return r.session.WriteRecord(ctx, then)
	})
}
