#!/bin/sh
# make-packages.sh DIR VERSION ARCH...: makes a tar.gz, a .deb, an .rpm, an .apk
# and an SBOM of each program kube-bootstrap-linux-ARCH in DIR, one OCI image for
# all of them, and SHA256SUMS. NFPM is the command that makes packages. SIGN_KEY is
# the file of an ed25519 private key in PEM that signs SHA256SUMS.
set -eu

dir=$(cd "$1" && pwd) version=$2
key=${SIGN_KEY:+$(realpath "$SIGN_KEY")}
shift 2
cd "$(dirname "$0")/.."
nfpm=${NFPM:-go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.45.0}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
built="@$SOURCE_DATE_EPOCH"

# A version that is no release sorts before every release.
prerelease=
case $version in
v[0-9]*.[0-9]*.[0-9]*-* | [!v]*) number=0.0.0 prerelease=git$(date -u -d "$built" +%Y%m%d%H%M%S) ;;
*) number=${version#v} ;;
esac

# The pages and completions are the same for all architectures.
go run ./cmd/kube-bootstrap genman "$scratch/share"
gzip -9n "$scratch"/share/man/man1/*
install -D -m 644 LICENSE "$scratch/share/doc/kube-bootstrap/copyright"

for arch in "$@"; do
	name=kube-bootstrap-$version-linux-$arch
	root=$scratch/$name
	mkdir "$root"
	cp -r "$scratch/share" "$root/share"
	install -D -m 755 "$dir/kube-bootstrap-linux-$arch" "$root/bin/kube-bootstrap"
	tar -C "$scratch" --sort=name --owner=0 --group=0 --numeric-owner --mtime="$built" -c "$name" | gzip -9n >"$dir/$name.tar.gz"
	go run ./packaging/sbom "$dir/kube-bootstrap-linux-$arch" "$version" >"$dir/$name.spdx.json"
	case $arch in
	arm) package=arm7 ;;
	*) package=$arch ;;
	esac
	sed -e "s|@ARCH@|$package|; s|@VERSION@|$number|; s|@PRERELEASE@|$prerelease|; s|@ROOT@|$root|; s|@MTIME@|$(date -u -d "$built" +%Y-%m-%dT%H:%M:%SZ)|" \
		packaging/nfpm.yaml >"$scratch/nfpm.yaml"
	for format in deb rpm apk; do
		$nfpm package --config "$scratch/nfpm.yaml" --packager $format --target "$dir/$name.$format" >/dev/null
	done
	rm -rf "$root"
done
go run ./packaging/image "$scratch/oci" "$dir/kube-bootstrap-linux" "$version" "$@"
tar -C "$scratch/oci" --sort=name --owner=0 --group=0 --numeric-owner --mtime="$built" -cf "$dir/kube-bootstrap-$version.oci.tar" .
cd "$dir" && sha256sum kube-bootstrap-* >SHA256SUMS
if [ -n "$key" ]; then
	openssl pkeyutl -sign -inkey "$key" -rawin -in SHA256SUMS -out SHA256SUMS.sig
	openssl pkey -in "$key" -pubout -out signing-key.pub
else
	echo "not signed: SIGN_KEY=FILE names an ed25519 private key in PEM that signs SHA256SUMS"
fi
