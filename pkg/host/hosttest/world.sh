# Prints everything on a host that kube-bootstrap might change, one fact a line, in words that do not depend on chance:
# ids of containers, names of veths and counters are masked, and what a reboot of a test host changes: the ports of
# Docker's resolver and the number of its link. The order of lines means nothing. `world.sh TIMES` also tells on stderr
# where the time went.
set -u
export LC_ALL=C
began=$$
mask() {
  sed -E 's/[0-9a-f]{64}/ID/g; s/veth[0-9a-f]+(@if[0-9]+)?/veth/g; s/br-[0-9a-f]{12}/br-ID/g; s/\b[0-9a-f]{12}\b/ID/g
    s/(eth[0-9]+@if)[0-9]+/\1N/; /127\.0\.0\.11/ s/(127\.0\.0\.11:|sport )[0-9]+/\1PORT/'
}
section() { sed "s/^/$1: /"; }

# What this script itself runs, and what whoever started it runs, is left out by its parent. Kernel threads, and what
# systemd starts and stops as it likes, are not the host's state; nor are the commands that flanneld and kube-proxy
# run all the time to compare firewall rules. Of shims the namespace tells whose they are.
processes() {
  awk -v me=$began '$1 == me || $2 == me || $3 ~ /^\[/ || /contract\.test/ {next}
    /containerd-shim/ {for (i = 3; i < NF; i++) if ($i == "-namespace") print "containerd-shim", $(i+1); next}
    {print $3, $4, $5}' "$out/ps" | grep -vE '^\(|agetty|systemd-(hostnamed|timedated|localed|tmpfiles|userwork|nsresourced|userdbd)|^docker exec|^sh -c sleep|^(/usr/s?bin/)?(ip6?tables|nft)(-[a-z]+)? ' | mask
}

# Left out: what this test keeps on the host, journals, the insides of Docker's and containerd's stores (their parts
# are told by engines() and stores()), and what systemd and the machine around a test host rewrite as they like.
files() {
  find / /var/lib /run -xdev \( \
    -path /proc -o -path /sys -o -path /dev -o -path /tmp -o -path /root/.cache -o -path /root/.docker -o -path /var/tmp -o -path /var/cache \
    -o -path /usr/share -o -path /usr/lib -o -path /var/log/journal -o -path /run/log -o -path /run/systemd -o -path /run/udev -o -path /run/user -o -path /run/utmp -o -path /run/lock -o -path /run/xtables.lock \
    -o -path /var/lib/systemd -o -path /var/lib/dpkg -o -path '/var/lib/docker/*' -o -path '/var/lib/containerd/*' -o -path '/var/lib/docker-bootstrap/*' -o -path '/run/docker-bootstrap/*' -o -path '/run/docker/*' -o -path '/run/containerd/*' \
    -o -path /etc/hosts -o -path /etc/resolv.conf -o -path /usr/local/bin/kube-bootstrap -o -path /opt/kube-bootstrap \
    \) -prune -o -printf '%y %m %u:%g %p %l\n' 2>/dev/null | sort -u
}

content() {
  find /etc /usr/local /opt /root -xdev \( -path /etc/hosts -o -path /etc/resolv.conf -o -path /usr/local/bin/kube-bootstrap -o -path /opt/kube-bootstrap \) -prune -o -type f -print0 |
    xargs -0 sha256sum | cut -c1-16,65-
}

# Numbers of snapshots and names of fifos are chance; how many there are is not. containerd makes its uuid, and the
# empty tree of a store, when somebody first asks for it; Docker its name for the host's network, and the directory of
# tasks in the containerd that it starts itself, with the first container there. A Docker that its own limit for a
# shutdown has ended leaves a socket.
stores() {
  find /var/lib/containerd /run/containerd /run/docker -xdev -path '*/rootfs/*' -prune -o -path '*/snapshots/*/*' -prune -o -path '*.introspection*' -prune -o -path /run/containerd/fifo/\* -prune -o -printf '%y %m %p\n' 2>/dev/null |
    sed -E 's,snapshots/[0-9]+,snapshots/N,; s,(sha256/)[0-9a-f]{64},\1ID,' |
    grep -vE '^d .*/io\.containerd\.content\.v1\.content(/blobs|/blobs/sha256|/ingest)?$|snapshotter\.v1\.[a-z]+/metadata\.db$|/run/docker/netns/default$|/run/docker/containerd/daemon/io\.containerd\.runtime\.v2\.task/moby$|/run/docker/libnetwork/[0-9a-f]+\.sock$' | mask
  find /var/lib/docker -maxdepth 1 -printf '%y %m %p\n' 2>/dev/null
}

tables() { # of iptables or ip6tables
  "$1"-save 2>/dev/null | awk '/^#/ {next} /^\*/ {t = $1} {gsub(/\[[0-9]+:[0-9]+\]/, ""); print t, $0}' | mask
}

nftables() {
  nft list ruleset 2>/dev/null | awk '/^table/ {t = $2 " " $3; c = ""} /^\tchain|^\tset|^\tmap/ {c = $2} NF && $1 != "}" {gsub(/counter packets [0-9]+ bytes [0-9]+/, "counter"); print t, c, $0}' | mask
}

network() {
  ip -o link | awk '{print $2, $4, $5}' | mask | section link
  ip -o -4 addr | awk '{print $2, $4}' | mask | section address
  ip -4 route show table all | grep -v '^broadcast\|^local' | mask | section route
  ip rule | section rule
  ip -o neigh show nud permanent | mask | section neighbour
  bridge fdb show 2>/dev/null | grep -v veth | grep -E 'flannel|dst' | section fdb
}

units() {
  [ -d /run/systemd/system ] || { ls /etc/init.d /etc/rc?.d /etc/runlevels/* 2>/dev/null; return; }
  systemctl list-unit-files --no-legend --no-pager | awk '{print "file", $1, $2}'
  systemctl list-units --type=service,socket,timer,path,slice --all --no-legend --no-pager --plain | awk '$3 != "inactive" {print $1, $3}' |
    grep -vE 'user@|user-|session|systemd-(tmpfiles-clean|hostnamed|timedated|localed|userdbd|nsresourced|sysusers|journal-catalog-update|update-done)|ldconfig|getty|logrotate|man-db|apt-|dpkg|e2scrub|fstrim'
  ls /run/systemd/transient 2>/dev/null | grep '\.slice$' | sed 's/^/transient /'
}

# Left out are counters, what the kernel tunes by itself, and what belongs to single containers' links.
kernel() {
  sysctl -a 2>/dev/null | grep -vE '^(kernel\.random\.|fs\.(dentry-state|inode-|file-nr|aio-nr|quota\.syncs)|kernel\.(ns_last_pid|pty\.nr|perf_|tainted|sched_domain)|net\.netfilter\.nf_conntrack_count)|\.veth|netns_'
}

# A container has no modules of its own: those of the machine around it are not this host's state. The inode of the
# first PID namespace is a constant of Linux.
modules() {
  [ "$(readlink /proc/self/ns/pid)" != 'pid:[4026531836]' ] || cut -d ' ' -f 1 /proc/modules
}

cgroups() {
  find /sys/fs/cgroup -type d 2>/dev/null | grep -vE '/docker/[0-9a-f]+|docker-[0-9a-f]+|session|user\.slice|run-|init\.scope|\.mount$|systemd-(hostnamed|tmpfiles|timedated|localed|userdbd|nsresourced)|\.service$|/system\.slice/' | mask
}

mounts() {
  awk '{for (i = 7; $i != "-"; i++); print $5, $(i+1)}' /proc/self/mountinfo | grep -vE 'docker(-bootstrap)?/(overlay2|containers)/|/run/docker/netns|/run/credentials' | mask
}

engines() {
  second=unix:///run/docker-bootstrap.sock
  [ ! -S "${second#unix://}" ] || {
    docker -H $second image ls --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}'
    docker -H $second ps -a --format '{{.Names}} {{.Image}} {{.State}}'
  } | section bootstrap
  docker image ls --no-trunc --format '{{.Repository}}:{{.Tag}} {{.ID}}' | section image
  docker network ls --format '{{.Name}} {{.Driver}}' | section docker-network
  docker volume ls -q | mask | section volume
  docker network inspect bridge --format '{{json .IPAM.Config}} {{json .Options}}' | section bridge
  ids=$(docker ps -aq)
  [ -z "$ids" ] || docker inspect $ids --format '{{.Name}} {{.Config.Image}} {{.State.Status}} {{.NetworkSettings.Networks.bridge.IPAddress}}' 2>/dev/null | section container
  for ns in $(ctr namespaces list -q 2>/dev/null); do
    echo "containerd-namespace: $ns"
    case $ns in moby*) ;; *) ctr -n "$ns" images list -q | sed "s/^/containerd-image: $ns /" | mask ;; esac
  done
}

out=$(mktemp -d)
ps -eo pid,ppid,args --no-headers > "$out/ps"
processes | section process > "$out/0"
i=0
for part in files content stores mounts network units kernel modules cgroups nftables "tables iptables" "tables ip6tables" engines; do
  i=$((i + 1))
  [ -z "${1:-}" ] || s=$(date +%s%N)
  case $part in network|engines) $part ;; *) $part | section "${part#tables }" ;; esac > "$out/$i"
  [ -z "${1:-}" ] || echo "$part $((($(date +%s%N) - s) / 1000000)) ms" >&2
done
rm "$out/ps"
cat "$out"/*
rm -r "$out"
