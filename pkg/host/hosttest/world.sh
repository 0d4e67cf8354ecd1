# Prints everything on a host that kube-bootstrap might change, one fact a line, in an order and in words that do not
# depend on chance: ids of containers, names of veths and counters are masked.
set -u
mask() { sed -E 's/[0-9a-f]{64}/ID/g; s/veth[0-9a-f]+(@if[0-9]+)?/veth/g; s/br-[0-9a-f]{12}/br-ID/g; s/[0-9a-f]{12}\b/ID/g'; }
section() { sed "s/^/$1: /"; }

find / /var/lib /run -xdev \( \
  -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root/.cache -o -path /var/log/journal -o -path /var/log/kube-bootstrap-test \
  -o -path /var/lib/docker/overlay2 -o -path /var/lib/docker/image -o -path /var/lib/docker/containers -o -path /var/lib/docker/buildkit -o -path /var/lib/docker/network \
  -o -path /var/lib/docker/rootfs -o -path /var/lib/docker/containerd -o -path /var/lib/docker/volumes -o -path /var/lib/docker/tmp -o -path /var/lib/containerd \
  -o -path /run/docker -o -path /run/containerd -o -path /run/systemd -o -path /run/udev -o -path /run/log -o -path /run/user -o -path /run/utmp -o -path /run/lock -o -path /run/xtables.lock -o -path /run/netns \
  -o -path /var/lib/systemd -o -path /var/cache -o -path /var/tmp -o -path /etc/hosts -o -path /etc/resolv.conf -o -path /usr/local/bin/kube-bootstrap -o -path /opt/kube-bootstrap -o -path /root/.docker \
  \) -prune -o -printf '%y %m %u:%g %p %l\n' 2>/dev/null | sort -u | section file
find /etc /usr/local /opt /root -xdev -type f ! -path '/etc/hosts' ! -path '/etc/resolv.conf' ! -path '/usr/local/bin/kube-bootstrap' ! -path '/opt/kube-bootstrap/*' -print0 | sort -z | xargs -0 sha256sum | cut -c1-16,65- | section content
ls -A /run/docker-bootstrap* /run/flannel /run/netns /var/lib/cni /opt/cni /etc/cni 2>/dev/null | section leftovers
awk '{print $5, $9 == "-" ? $10 : $9}' /proc/self/mountinfo | grep -vE 'docker/(overlay2|containers)|/run/docker/netns|/run/containerd|/run/credentials|rootfs' | mask | sort | section mount
ip -o link | awk '{print $2, $4, $5}' | mask | sort | section link
ip -o -4 addr | awk '{print $2, $4}' | mask | sort | section address
ip -4 route show table all | grep -v '^broadcast\|^local\|veth' | mask | sort | section route
ip rule | section rule
iptables-save 2>/dev/null | grep -v '^#' | sed -E 's/\[[0-9]+:[0-9]+\]//' | mask | section iptables
ip6tables-save 2>/dev/null | grep -v '^#' | sed -E 's/\[[0-9]+:[0-9]+\]//' | mask | section ip6tables
nft list ruleset 2>/dev/null | sed -E 's/counter packets [0-9]+ bytes [0-9]+//' | mask | section nft
if [ -d /run/systemd/system ]; then
  systemctl list-unit-files --no-legend --no-pager | awk '{print $1, $2}' | sort | section unit-file
  systemctl list-units --type=service,socket --state=active,failed --no-legend --no-pager --plain | awk '{print $1, $3}' | grep -vE 'user@|user-runtime|session|systemd-(tmpfiles-clean|hostnamed|timedated|localed)|getty' | sort | section unit
fi
sysctl -a 2>/dev/null | grep -vE 'random|\.nr|-nr|dentry|inode-state|ns_last_pid|conntrack_count|nf_conntrack_(buckets|max) |veth|cpufreq|sched_domain|pty|perf|file-max|threads-max|rcu|sunrpc|\.route\.gc|mem = |neigh\.(docker0|flannel)|conf\.docker0|tainted|netns_' | sort | section sysctl
find /sys/fs/cgroup -type d 2>/dev/null | grep -vE 'docker/ID|docker-[0-9a-f]+|/docker/[0-9a-f]+|session|user\.slice|run-|init\.scope|\.mount$|systemd-(hostnamed|tmpfiles)' | mask | sort -u | section cgroup
ps -eo args --no-headers | awk '{print $1, $2, $3}' | grep -vE '^\[|^ps |^awk |^sh |^bash|^sort|^grep|^find|^sed|kube-bootstrap-test|containerd-shim|^runc|^\(|^/sbin/agetty|docker-proxy|systemd-|^/usr/sbin/nft|^cut|docker exec' | mask | sort | section process
docker ps --format '{{.Names}} {{.Image}} {{.State}}' | sort | section container
docker images --format '{{.Repository}}:{{.Tag}}' | sort | section image
docker network inspect bridge --format '{{json .IPAM.Config}} {{json .Options}}' | section bridge
for id in $(docker ps -q); do docker inspect "$id" --format '{{.Name}} {{.NetworkSettings.Networks.bridge.IPAddress}}'; done 2>/dev/null | sort | section container-address
ctr namespaces list -q 2>/dev/null | sort | section containerd-namespace
for ns in $(ctr namespaces list -q 2>/dev/null | grep -v '^moby'); do ctr -n "$ns" images list -q | sed "s/^/$ns /"; done | mask | sort | section containerd-image
