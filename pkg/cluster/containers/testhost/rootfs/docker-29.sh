# Compiles Docker 29 into the root file system $1, with the flags of moby's Dockerfile for its
# dynamic programs: Debian has no Docker 29. The Go toolchain and its caches are those of this
# machine, the C libraries those of the host. The mounts end with this namespace, so that nobody
# who removes the root file system removes the caches.
moby=github.com/moby/moby/v2@v2.0.0-beta.24 docker=29.9.3
containerd=github.com/containerd/containerd/v2@v2.4.2
runc=github.com/opencontainers/runc@v1.5.3
libraries="gcc libc6-dev pkg-config libseccomp-dev libsystemd-dev libnftables-dev"

exec env moby=$moby docker=$docker containerd=$containerd runc=$runc libraries="$libraries" \
	GOFLAGS="-trimpath -buildvcs=false" GOWORK=off GOTOOLCHAIN=local CGO_ENABLED=1 DEBIAN_FRONTEND=noninteractive \
	unshare --mount bash -eu -o pipefail -s "$1" <<'END'
cd "$1"
chroot . apt-get install -y -q $libraries </dev/null
caches=$(go env GOROOT GOMODCACHE GOCACHE)
for dir in $caches; do
	mkdir -p ".$dir"
	mount --bind "$dir" ".$dir"
done

# compile MODULE TAGS LDFLAGS OUTPUT PACKAGE...: the sums of its dependencies are those of MODULE.
# The machine downloads them, because only it is set up for its network.
compile() {
	source=$(cd /tmp && go mod download -json "$1" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
	tags=$2 flags=$3 output=$4
	shift 4
	(cd "$source" && go list -deps -tags "$tags" "$@" >/dev/null)
	chroot . env -C "$source" GOMODCACHE="$(go env GOMODCACHE)" GOCACHE="$(go env GOCACHE)" GOPROXY=off \
		"$(go env GOROOT)/bin/go" build -buildmode=pie -tags "$tags" -ldflags "-s -w $flags" -o "$output" "$@" </dev/null
}
version=github.com/moby/moby/v2/dockerversion
compile $moby "nri_no_wasm journald" "-X $version.Version=$docker -X $version.PlatformName=Docker" /usr/bin/ ./cmd/dockerd ./cmd/docker-proxy
version=github.com/containerd/containerd/v2/version
stamp="-X $version.Version=${containerd##*@} -X $version.Package=github.com/containerd/containerd/v2"
compile $containerd urfave_cli_no_docs "$stamp" /usr/bin/ ./cmd/containerd ./cmd/ctr
CGO_ENABLED=0 compile $containerd "urfave_cli_no_docs no_grpc" "$stamp" /usr/bin/ ./cmd/containerd-shim-runc-v2
compile $runc "seccomp urfave_cli_no_docs" "" /usr/bin/runc .

for dir in $caches; do
	umount ".$dir"
	rmdir -p --ignore-fail-on-non-empty ".$dir"
done
chroot . apt-get purge -y -q --autoremove $libraries </dev/null
chroot . groupadd --system docker
END
