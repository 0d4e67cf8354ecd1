# The programs and images that kubeadm's packages and registries would bring.
set -e
ctr -n k8s.io images import /opt/kube-bootstrap/bundle.tar.zst >/dev/null
for name in apiserver controller-manager scheduler proxy; do
	ctr -n k8s.io images tag --force kube-bootstrap.dev/hyperkube:KUBERNETES registry.k8s.io/kube-$name:KUBERNETES >/dev/null
done
docker create --name programs kube-bootstrap.dev/hyperkube:KUBERNETES kubelet >/dev/null
docker cp -q programs:/usr/local/bin/hyperkube /opt/kubeadm/hyperkube
docker cp -q programs:/opt/cni/bin /opt/kubeadm/cni
docker rm programs >/dev/null
for name in kubelet kubectl; do ln -sf hyperkube /opt/kubeadm/$name; done
echo 'nameserver 192.0.2.1' >/opt/kubeadm/resolv.conf
