#!/bin/sh
# install.sh FROM [PREFIX]: installs kube-bootstrap below PREFIX (/usr/local) from FROM, a
# directory or a https:// address that has what `make dist` built. It verifies the checksum,
# and with VERIFY_KEY=FILE, an ed25519 public key in PEM, the signature of the checksums too.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

[ $# -ge 1 ] && [ $# -le 2 ] || fail "usage: install.sh FROM [PREFIX]"
from=${1%/} prefix=${2:-/usr/local}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# get NAME: copies a file of FROM into the scratch directory. wget would follow a
# redirect to http://, so it follows none.
get() {
	case $from in
	https://*)
		if command -v curl >/dev/null; then
			curl -fsSL --proto '=https' -o "$scratch/$1" "$from/$1"
		else
			wget -q --max-redirect=0 -O "$scratch/$1" "$from/$1"
		fi
		;;
	*://*) fail "$from: only https:// and directories are accepted" ;;
	*) cp "$from/$1" "$scratch/$1" ;;
	esac || fail "cannot get $1 from $from"
}

case $(uname -s)-$(uname -m) in
Linux-x86_64) arch=amd64 ;;
Linux-aarch64) arch=arm64 ;;
Linux-armv7l | Linux-armv8l) arch=arm ;;
Linux-ppc64le) arch=ppc64le ;;
Linux-s390x) arch=s390x ;;
*) fail "there is no program for $(uname -s) on $(uname -m)" ;;
esac

get SHA256SUMS
if [ -n "${VERIFY_KEY:-}" ]; then
	get SHA256SUMS.sig
	openssl pkeyutl -verify -pubin -inkey "$VERIFY_KEY" -rawin -in "$scratch/SHA256SUMS" -sigfile "$scratch/SHA256SUMS.sig" >/dev/null ||
		fail "SHA256SUMS was not signed with the key of $VERIFY_KEY"
fi
file=$(sed -n "s/^[0-9a-f]*  \(kube-bootstrap-.*-linux-$arch\.tar\.gz\)\$/\1/p" "$scratch/SHA256SUMS")
case $file in
'' | */* | *"
"*) fail "SHA256SUMS does not name one archive for $arch" ;;
esac
get "$file"
(cd "$scratch" && grep "  $file\$" SHA256SUMS | sha256sum -c - >/dev/null 2>&1) || fail "$file does not have the checksum of SHA256SUMS"
tar -C "$scratch" -xzf "$scratch/$file"
root=$scratch/${file%.tar.gz}

# The program goes in last, and at once: it may run at this moment.
mkdir -p "$prefix/bin" "$prefix/share"
cp -R "$root/share/." "$prefix/share/"
install -m 755 "$root/bin/kube-bootstrap" "$prefix/bin/.kube-bootstrap.new"
mv "$prefix/bin/.kube-bootstrap.new" "$prefix/bin/kube-bootstrap"
"$prefix/bin/kube-bootstrap" version
