package kubelet

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Renew has the kubelet of a control plane use new certificates, those of
// Held with the given names. It needs an API server for the serving certificate.
func (k Kubelet) Renew(names []string) step.Step {
	old := map[string][]byte{}
	for _, held := range Held() {
		if slices.Contains(names, held.Name) {
			old[held.Path], _ = k.Files.Read(held.Path)
		}
	}
	if len(old) == 0 {
		return step.Step{}
	}
	return step.Step{
		Name: "renew the certificates of the kubelet",
		Check: func(context.Context) (diff step.Diff, err error) {
			for _, path := range unrenewed(k.Files, old) {
				diff = append(diff, "renew "+path)
			}
			return diff, nil
		},
		Apply: func(ctx context.Context) error { return k.renew(ctx, old) },
	}
}

// unrenewed lists the files of old that have no new certificate yet.
func unrenewed(files host.Files, old map[string][]byte) (paths []string) {
	for path, before := range old {
		now, err := files.Read(path)
		if err == nil {
			_, err = pki.ParseCertificate(now)
		}
		if err != nil || bytes.Equal(now, before) {
			paths = append(paths, path)
		}
	}
	return paths
}

// renew starts the kubelet again, because it reads its certificates only when it
// starts. Its pods keep running. Without a serving certificate it asks for one.
func (k Kubelet) renew(ctx context.Context, old map[string][]byte) error {
	if err := k.service().Remove(ctx); err != nil {
		return err
	}
	for _, path := range unrenewed(k.Files, old) {
		replace := k.writePair
		if path == servingPair {
			replace = func(context.Context) error { return k.Files.Remove(servingPair) }
		}
		if err := replace(ctx); err != nil {
			return err
		}
	}
	if err := k.start(ctx); err != nil {
		return err
	}
	return step.Until(ctx, func(context.Context) error {
		if left := unrenewed(k.Files, old); len(left) > 0 {
			return fmt.Errorf("the kubelet has no new %s yet", left[0])
		}
		return nil
	}, k.service().Explain)
}

// Serving is the name of the serving certificate in Held.
const Serving = "kubelet-server"

const servingPair = pkiDir + "/kubelet-server-current.pem"

// Held lists the certificates of a kubelet, which renews them itself.
func Held() []pki.Held {
	const remedy = "see in `docker logs kubelet` why the kubelet has not renewed its certificate"
	return []pki.Held{
		{Name: "kubelet-client", Path: currentPair, Purpose: "the kubelet shows it to the API server", RenewedBy: "kubelet", Remedy: remedy},
		{Name: Serving, Path: servingPair, Purpose: "the kubelet serves with it", RenewedBy: "kubelet", Remedy: remedy},
	}
}
