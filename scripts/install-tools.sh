#!/bin/sh
# install-tools.sh [test]: installs what building needs on a fresh Debian or
# Ubuntu, and with "test" what the tests talk to. Fast and silent when
# everything is there.
set -eu

# program:package
tools='dockerd:docker.io docker:docker.io mmdebstrap:mmdebstrap iptables:iptables ip:iproute2 git:git make:make
curl:curl gcc:gcc zstd:zstd conntrack:conntrack nft:nftables'
[ "${1:-}" != test ] || tools="$tools docker-registry:docker-registry skopeo:skopeo openssl:openssl mkfs.ext4:e2fsprogs
sshd:openssh-server ssh:openssh-client qemu-aarch64-static:qemu-user-static rpm:rpm
bc:bc bison:bison depmod:kmod ethtool:ethtool flex:flex xz:xz-utils"

command -v go >/dev/null || {
	echo "Go is missing: install it from https://go.dev/dl/ and put its bin directory into PATH" >&2
	exit 1
}

missing=
for tool in $tools; do
	command -v "${tool%%:*}" >/dev/null || missing="$missing ${tool#*:}"
done
# From Debian 13 on, the docker command is a package of its own.
case " $missing " in *' docker.io '*)
	if apt-cache show docker-cli >/dev/null 2>&1; then missing="$missing docker-cli"; fi ;;
esac
[ -f /usr/share/keyrings/debian-archive-keyring.gpg ] || missing="$missing debian-archive-keyring"
[ "${1:-}" != test ] || [ -f /usr/include/stdio.h ] || missing="$missing libc6-dev"
[ -f /etc/ssl/certs/ca-certificates.crt ] || missing="$missing ca-certificates"
[ -n "$missing" ] || exit 0

[ "$(id -u)" = 0 ] || {
	echo "run as root, or install these packages:$missing" >&2
	exit 1
}
command -v apt-get >/dev/null || {
	echo "this is not Debian or Ubuntu; install by hand:$missing" >&2
	exit 1
}
logged=$(dirname "$0")/logged.sh
log=$(dirname "$0")/../_output/install-tools.log
echo "installing:$missing" >&2
export DEBIAN_FRONTEND=noninteractive
"$logged" "$log" apt-get update -q
# The package's start of Docker fails where no init system runs; that is
# start-docker.sh's business.
# shellcheck disable=SC2086
"$logged" "$log" apt-get install -y -q --no-install-recommends $missing
