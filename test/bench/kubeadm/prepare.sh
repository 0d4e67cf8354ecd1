# What kubeadm's guide has its user do before init and join.
set -e
mkdir -p /etc/containerd /etc/cni/net.d
cp /etc/containerd/config.toml /opt/kubeadm/config.toml.before 2>/dev/null || :
cat >/etc/containerd/config.toml <<'TOML'
version = 3
[plugins.'io.containerd.cri.v1.runtime']
  restrict_oom_score_adj = true
[plugins.'io.containerd.cri.v1.runtime'.cni]
  bin_dirs = ['/opt/kubeadm/cni']
  conf_dir = '/etc/cni/net.d'
[plugins.'io.containerd.cri.v1.images'.pinned_images]
  sandbox = 'registry.k8s.io/pause:PAUSE'
TOML
cat >/etc/cni/net.d/10-flannel.conflist <<'JSON'
{"cniVersion": "1.0.0", "name": "cbr0", "plugins": [
  {"type": "bridge", "bridge": "cni0", "mtu": 1450, "isGateway": true, "hairpinMode": true, "ipMasq": false,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "SUBNET.0/24"}]], "routes": [{"dst": "10.244.0.0/16"}, {"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
JSON
cat >/etc/systemd/system/kubelet.service <<'UNIT'
[Unit]
StartLimitIntervalSec=0
[Service]
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
ExecStart=/opt/kubeadm/kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml $KUBELET_KUBEADM_ARGS
Restart=always
RestartSec=10
UNIT
systemctl daemon-reload
sysctl -qw net.ipv4.ip_forward=1
systemctl restart containerd
