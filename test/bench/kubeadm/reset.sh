# What `kubeadm reset` leaves to its user.
systemctl stop kubelet 2>/dev/null
rm -f /etc/systemd/system/kubelet.service /etc/containerd/config.toml
mv /opt/kubeadm/config.toml.before /etc/containerd/config.toml 2>/dev/null
ip link delete cni0 2>/dev/null
ip link delete flannel.1 2>/dev/null
for tables in iptables ip6tables; do $tables-save | grep -vE 'KUBE|FLANNEL|CNI' | $tables-restore; done
rm -rf /etc/cni/net.d /etc/kubernetes /var/lib/cni /var/lib/kubelet /var/lib/etcd /run/flannel
systemctl daemon-reload
systemctl restart containerd
