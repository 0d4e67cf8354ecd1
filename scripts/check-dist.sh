#!/bin/sh
# Checks the packages and runs each program of a directory that make dist filled, those of other
# architectures under qemu-user: version, preflight (which may find problems,
# and no more) and the list of images. Without an emulator that one is named
# and left out.
set -eu

dir=${1:-_output/dist}
machine=$(uname -m)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# emulator prints what runs the programs of a Go architecture; "native" when
# the machine itself does.
emulator() {
	case $1 in
	amd64) name=x86_64 ;;
	arm64) name=aarch64 ;;
	arm) name=arm ;;
	*) name=$1 ;;
	esac
	if [ "$name" = "$machine" ]; then
		echo native
	else
		command -v "qemu-$name-static" || command -v "qemu-$name" || true
	fi
}

# run ALLOWED-CODE ARGS... runs the program and wants it to end with 0 or that
# code.
run() {
	allowed=$1
	shift
	code=0
	if [ "$emulator" = native ]; then
		"$program" "$@" >"$scratch/out" 2>&1 || code=$?
	else
		"$emulator" "$program" "$@" >"$scratch/out" 2>&1 || code=$?
	fi
	[ "$code" = 0 ] || [ "$code" = "$allowed" ] || {
		echo "$program $*: exit code $code" >&2
		cat "$scratch/out" >&2
		exit 1
	}
}

says() {
	grep -q "$1" "$scratch/out" || {
		echo "$program: no \"$1\" in what it printed:" >&2
		cat "$scratch/out" >&2
		exit 1
	}
}

# holds FILE COMMAND...: the list of files that the command prints for a package
# has everything that is to be installed.
holds() {
	file=$1
	shift
	"$@" "$file" >"$scratch/list" 2>/dev/null || true
	for path in bin/kube-bootstrap share/man/man1/kube-bootstrap-master.1.gz share/bash-completion/completions/kube-bootstrap \
		share/zsh/site-functions/_kube-bootstrap share/fish/vendor_completions.d/kube-bootstrap.fish share/doc/kube-bootstrap/copyright; do
		grep -q "$path\$" "$scratch/list" || {
			echo "$file: no $path" >&2
			exit 1
		}
	done
}

# installs SAYS ARGS...: install.sh ends as expected; SAYS is what it prints.
installs() {
	expected=$1
	shift
	"$(dirname "$0")/install.sh" "$@" >"$scratch/out" 2>&1 || true
	program=install.sh says "$expected"
}

# rpm_installs RPM: the package installs a program that runs, and is removed
# without a trace.
rpm_installs() {
	mkdir "$scratch/root"
	rpm --root "$scratch/root" --nodeps -i "$1" 2>/dev/null
	"$scratch/root/usr/bin/kube-bootstrap" version >/dev/null
	rpm --root "$scratch/root" -e kube-bootstrap 2>/dev/null
	rm -rf "$scratch"/root/root/.rpmdb "$scratch"/root/var/lib/rpm
	left=$(find "$scratch/root" ! -type d)
	[ -z "$left" ] || {
		echo "$1 leaves $left" >&2
		exit 1
	}
	rm -rf "$scratch/root"
}

# loads ARCHIVE ARCH: Docker loads the image of that architecture, and runs it.
loads() {
	docker load -q -i "$1" >"$scratch/loaded"
	image=$(sed -n "s/^Loaded image: //p" "$scratch/loaded" | grep -e "-$2\$")
	docker run --rm "$image" version >"$scratch/out"
	sed -n "s/^Loaded image: //p" "$scratch/loaded" | xargs docker rmi >/dev/null
	program=$1 says "linux/$2"
}

(cd "$dir" && sha256sum --quiet -c SHA256SUMS)
tar -tf "$(ls "$dir"/kube-bootstrap-*.oci.tar)" | grep -qx ./index.json
installs "^kube-bootstrap " "$dir" "$scratch/prefix"
mkdir "$scratch/changed"
cp "$dir"/*.tar.gz "$scratch/changed"
sed 's/^[0-9a-f]\{8\}/00000000/' "$dir/SHA256SUMS" >"$scratch/changed/SHA256SUMS"
installs "does not have the checksum" "$scratch/changed" "$scratch/other"
[ ! -e "$scratch/other" ]
if [ -e "$dir/SHA256SUMS.sig" ]; then
	export VERIFY_KEY="$dir/signing-key.pub"
	installs "^kube-bootstrap " "$dir" "$scratch/prefix"
	cp "$dir/SHA256SUMS.sig" "$scratch/changed"
	installs "was not signed with the key" "$scratch/changed" "$scratch/other"
	[ ! -e "$scratch/other" ]
fi
for program in "$dir"/kube-bootstrap-linux-*; do
	arch=${program##*-}
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".tar.gz)" tar -tzf
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".deb)" dpkg-deb -c
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".apk)" tar -tzf
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".rpm)" rpm -qlp
	grep -q '"SPDX-2.3"' "$dir"/kube-bootstrap-*-linux-"$arch".spdx.json
	emulator=$(emulator "$arch")
	[ -n "$emulator" ] || {
		echo "$program: not run, as qemu-user-static is not installed"
		continue
	}
	run 0 version
	says "linux/$arch"
	if [ "$emulator" = native ]; then
		rpm_installs "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".rpm)"
		loads "$(ls "$dir"/kube-bootstrap-*.oci.tar)" "$arch"
	fi
	run 0 offline list
	says hyperkube
	run 3 preflight
	says "check Docker"
	echo "$program: runs ($emulator)"
done
