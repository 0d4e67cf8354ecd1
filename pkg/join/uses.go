package join

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/retry"
	bootstrap "k8s.io/cluster-bootstrap/token/api"
	"k8s.io/cluster-bootstrap/token/util"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// usedBy is the annotation of a token with the name of the host that used it. A token that is not reusable is
// for that host only from then on.
const usedBy = "kube-bootstrap.dev/used-by"

// use returns a refusal if the author of a request, who showed a token, must not join as that host. The first
// request binds a token that is not reusable to its host. A second host with the same token is then refused,
// also if both request at the same time.
func use(
	ctx context.Context, client kubernetes.Interface, csr *certificatesv1.CertificateSigningRequest, host string,
) error {
	_, err := client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	known, scope := err == nil, scopeOf(csr.Spec.Groups)
	if err := scope.refuses(host, known); err != nil {
		return refusal{err}
	}
	if scope.Reusable {
		return nil
	}
	return retry.RetryOnConflict(retry.DefaultRetry, func() error { return bind(ctx, client, tokenID(csr), host) })
}

func bind(ctx context.Context, client kubernetes.Interface, id, host string) error {
	token, err := client.CoreV1().Secrets(system).Get(ctx, util.BootstrapTokenSecretName(id), metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return refusal{fmt.Errorf("the token %s was deleted", id)}
	case err != nil || token.Annotations[usedBy] == host:
		return err
	case token.Annotations[usedBy] != "":
		return refusal{fmt.Errorf("the token %s is for one host, and %s has used it", id, token.Annotations[usedBy])}
	}
	metav1.SetMetaDataAnnotation(&token.ObjectMeta, usedBy, host)
	_, err = client.CoreV1().Secrets(system).Update(ctx, token, metav1.UpdateOptions{})
	return err
}

func tokenID(csr *certificatesv1.CertificateSigningRequest) string {
	return strings.TrimPrefix(csr.Spec.Username, bootstrap.BootstrapUserPrefix)
}

// DropUsed deletes the tokens that are used up: their hosts have joined.
func (a NodeApprover) DropUsed(ctx context.Context) error {
	requests, client, err := kubeletClients(a.API).list(ctx)
	errs := []error{err}
	for i := range requests {
		scope := scopeOf(requests[i].Spec.Groups)
		issued, ok := issuedTo(&requests[i])
		if !ok || scope.Kind != ForWorker || scope.Reusable {
			continue
		}
		errs = append(errs, dropUsed(ctx, client, tokenID(&requests[i]), issued.Node,
			requests[i].CreationTimestamp.Time))
	}
	return errors.Join(errs...)
}

func dropUsed(ctx context.Context, client kubernetes.Interface, id, host string, since time.Time) error {
	node, err := client.CoreV1().Nodes().Get(ctx, host, metav1.GetOptions{})
	if err != nil || !reported(node, since) {
		return kube.IgnoreNotFound(err)
	}
	secrets, name := client.CoreV1().Secrets(system), util.BootstrapTokenSecretName(id)
	token, err := secrets.Get(ctx, name, metav1.GetOptions{})
	if err == nil && token.Annotations[usedBy] == host {
		unchanged := metav1.Preconditions{UID: &token.UID, ResourceVersion: &token.ResourceVersion}
		err = secrets.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &unchanged})
	}
	return kube.IgnoreNotFound(err)
}

// reported says whether the kubelet of a node has written its status since then: it has fetched its
// certificate, and needs no token any more.
func reported(node *corev1.Node, since time.Time) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return !c.LastHeartbeatTime.Time.Before(since)
	})
}

// Spend is the step of a joining control plane that deletes the token with which it has joined. The control
// plane deletes the token itself, with its administrator certificate.
func (j *Joining) Spend(api kube.Connect) step.Step {
	id := j.Target.Token.ID
	return step.When("delete-token", "delete the token", "delete the token "+id,
		func(ctx context.Context) (bool, error) {
			if id == "" {
				return false, nil
			}
			client, err := api.Client()
			if errors.Is(err, fs.ErrNotExist) {
				return true, nil
			}
			if err != nil {
				return false, err
			}
			secret, err := client.CoreV1().Secrets(system).Get(ctx, util.BootstrapTokenSecretName(id),
				metav1.GetOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				return false, kube.NoAnswer(fmt.Errorf("read the token %s: %w", id, err))
			}
			return err == nil && !tokenIn(secret).Reusable, nil
		}, func(ctx context.Context) error {
			return api.Do(func(client kubernetes.Interface) error { return DeleteToken(ctx, client, id) })
		})
}
