package kubelet

import "github.com/kube-bootstrap/kube-bootstrap/pkg/pki"

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
