#!/bin/sh
# boot.sh DIR SPACE NAME ADDRESS: runs DIR/linux with a copy of DIR/disk, DIR/NAME.disk, which keeps what the machine
# writes. All machines are in the network namespace SPACE, on one bridge.
# `ip netns exec SPACE ssh -i DIR/id root@ADDRESS` opens a shell on a machine.
set -eu
dir=$1 space=$2 name=$3 address=$4
ip netns add "$space" 2>/dev/null || true
ip() { command ip -n "$space" "$@"; }
ip link set lo up
ip link show bridge >/dev/null 2>&1 || {
	ip link add bridge type bridge
	ip address add "${address%.*}.1/24" dev bridge
	ip link set bridge up
}
# A kernel with several processors crashes when it opens a tap, so the machine gets a veth of its own to write packets
# on. With offloads the packets would be larger than the MTU of the machine.
ip link show "in-$name" >/dev/null 2>&1 || {
	ip link add "out-$name" type veth peer name "in-$name"
	ip link set "out-$name" master bridge up
	ip link set "in-$name" up promisc on
	command ip netns exec "$space" ethtool -K "in-$name" tx off rx off gro off gso off tso off >/dev/null
}
# The memory of the machine is a file, which must be executable. `ip netns exec` makes a mount namespace, so the tmpfs
# ends with the machine.
mkdir -p "$dir/memory"
mac=52:54:00$(printf ':%02x' $(echo "${address#*.}" | tr . ' '))
export dir TMPDIR="$dir/memory" HOME="$dir/memory"
# shellcheck disable=SC2016
exec ip netns exec "$space" sh -ec 'mount -t tmpfs -o size=4G,exec memory "$TMPDIR" && exec "$dir/linux" "$@"' linux \
	mem=3G ncpus=2 umid="$name" ubd0="$dir/$name.disk,$dir/disk" root=/dev/ubda rw \
	vec0:transport=raw,ifname="in-$name",depth=128,gro=0,mac="$mac" \
	name="$name" address="$address" con=null con0=null,fd:1 ssl=null seccomp=auto
