#!/bin/sh
# Unmount the cgroup controllers that systemd mounted and for which the engine
# created no cgroup. A pod's cgroup would otherwise be created in the root cgroup
# of the engine's host. Docker waits for this script, so it starts only one
# program.
kept=" $(tr '\n' ' ' </run/host-cgroups)"
while read -r _ dir type _; do
	[ "$type" = cgroup ] || continue
	case $kept in *" ${dir##*/} "*) continue ;; esac
	set -- "$@" "$dir"
done </proc/self/mounts
[ $# = 0 ] || umount "$@"
exit 0
