root=$1 dir=$2
shift 2
for programs in bin sbin lib lib64 usr; do
	[ -e "/$programs" ] || continue
	mkdir -p "$root/$programs"
	mount -o bind,ro "/$programs" "$root/$programs"
done
for devices in dev proc; do
	mkdir -p "$root/$devices"
	mount --rbind "/$devices" "$root/$devices"
done
exec chroot "$root" /bin/sh -c 'cd "${0:-/}" && exec "$@"' "$dir" "$@"
