#!/bin/sh
# disk.sh DIR MIRROR: DIR/disk, a Debian with the modules of kernel.sh and with Docker as its packages install it, and
# DIR/id, the SSH key of its root. The command line of the kernel gives a machine its name and its address.
set -eu
dir=$1 mirror=$2
[ -f "$dir/id" ] || ssh-keygen -q -t ed25519 -N '' -f "$dir/id"
work=$(mktemp -d "$dir/disk.XXXXXX")
trap 'rm -rf "$work"' EXIT
cat >"$work/customize" <<'H'
set -e
tar -C "$1" -xf "$DIR/modules.tar" --keep-directory-symlink
mkdir -p -m 700 "$1/root/.ssh"
cp "$DIR/id.pub" "$1/root/.ssh/authorized_keys"
echo '/dev/ubda / ext4 defaults 0 1' >"$1/etc/fstab"
: >"$1/etc/machine-id"
cat >"$1/etc/systemd/system/address.service" <<'U'
[Unit]
Description=Name and address from the command line of the kernel
DefaultDependencies=no
After=systemd-remount-fs.service systemd-udev-settle.service
Wants=systemd-udev-settle.service network-pre.target
Before=network-pre.target sysinit.target
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/address
[Install]
WantedBy=sysinit.target
U
cat >"$1/usr/local/sbin/address" <<'S'
#!/bin/sh
set -e
for word in $(cat /proc/cmdline); do
	case $word in name=*) name=${word#name=} ;; address=*) address=${word#address=} ;; esac
done
echo "$name" >/etc/hostname
hostname "$name"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$name" >/etc/hosts
link=$(ls /sys/class/net | grep -E '^(en|eth|vec)' | head -n 1)
ip link set lo up
ip link set "$link" up
ip address add "$address/24" dev "$link"
ip route add default via "${address%.*}.1"
S
chmod 755 "$1/usr/local/sbin/address"
chroot "$1" systemctl -q enable address ssh docker containerd
H
packages=systemd,systemd-sysv,dbus,udev,kmod,docker.io,docker-cli,iptables,nftables,iproute2,conntrack,curl
packages=$packages,ca-certificates,procps,openssh-server
DIR=$dir mmdebstrap --quiet --variant=minbase --customize-hook="sh $work/customize \"\$1\"" --include="$packages" \
	--aptopt='Acquire::Check-Valid-Until "false"' trixie "$work/root.tar" "deb $mirror trixie main"
mkdir "$work/root"
tar -C "$work/root" -xf "$work/root.tar"
truncate -s 12G "$work/disk"
mkfs.ext4 -q -d "$work/root" "$work/disk"
mv "$work/disk" "$dir/disk"
