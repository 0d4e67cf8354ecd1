#!/bin/sh
# The first process of a test host: gives the container what a machine has
# before its init runs, as far as it is missing. Every fix is made only where
# the lack is seen, so that nothing happens on a cgroup v2 machine with all
# capabilities.
set -u

kept=/run/host-cgroups

# Remount only the bind mount: the underlying file system may be mounted elsewhere too.
writable() {
	mount -o remount,bind,rw "$1" 2>/dev/null
}

# The engine mounts what it manages read-only; an init owns its own subtree.
for dir in /sys /proc/sys /sys/fs/cgroup; do
	mountpoint -q "$dir" && writable "$dir"
done
if [ "$(stat -fc %T /sys/fs/cgroup)" = tmpfs ]; then
	# cgroup v1: each controller is a mount. Record the controllers for which the
	# engine created a cgroup. systemd mounts further controllers;
	# host-cgroups.service unmounts them.
	for dir in /sys/fs/cgroup/*/; do
		mountpoint -q "$dir" || continue
		writable "$dir"
		basename "$dir" >>"$kept"
	done
fi

# The inotify limits hold for the whole machine; what Linux starts with is used
# up by a few hosts, and then kubelets fail to watch their files.
for limit in max_user_instances:1024 max_user_watches:524288; do
	file=/proc/sys/fs/inotify/${limit%%:*}
	[ "$(cat $file)" -ge "${limit#*:}" ] || echo "${limit#*:}" >"$file"
done

# Mounts made in a container of the host must reach the host: the kubelet's.
mount --make-rshared /

[ -e /dev/kmsg ] || mknod -m 600 /dev/kmsg c 1 11
mkdir -p /dev/net
[ -e /dev/net/tun ] || mknod -m 666 /dev/net/tun c 10 200
[ -e /dev/fuse ] || mknod -m 666 /dev/fuse c 10 229

# CAP_SYS_RESOURCE is bit 24. Without it nobody may lower an oom_score_adj, and
# containerd must be told not to try.
bounding=$(sed -n 's/^CapBnd:[[:space:]]*//p' /proc/self/status)
if [ $((0x$bounding >> 24 & 1)) = 0 ] && ! grep -qs restrict_oom_score_adj /etc/containerd/config.toml; then
	sed -i '/^[[:space:]]*\[plugins."io.containerd.grpc.v1.cri"\]/a\    restrict_oom_score_adj = true' /etc/containerd/config.toml
	# Nor may a limit be raised, which would end the init script.
	[ ! -f /etc/init.d/docker ] || sed -i 's/^\([[:space:]]*ulimit -.*\)$/\1 || true/' /etc/init.d/docker
fi

# Every host has an identity of its own from the start; systemd would take a
# missing one for a first boot and enable every unit there is.
grep -qsE '^[0-9a-f]{32}$' /etc/machine-id || tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id

exec /sbin/init "$@"
