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

(cd "$dir" && sha256sum --quiet -c SHA256SUMS)
for program in "$dir"/kube-bootstrap-linux-*; do
	arch=${program##*-}
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".tar.gz)" tar -tzf
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".deb)" dpkg-deb -c
	holds "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".apk)" tar -tzf
	[ "$(od -An -tx1 -N4 "$(ls "$dir"/kube-bootstrap-*-linux-"$arch".rpm)")" = " ed ab ee db" ]
	grep -q '"SPDX-2.3"' "$dir"/kube-bootstrap-*-linux-"$arch".spdx.json
	emulator=$(emulator "$arch")
	[ -n "$emulator" ] || {
		echo "$program: not run, as qemu-user-static is not installed"
		continue
	}
	run 0 version
	says "linux/$arch"
	run 0 offline list
	says hyperkube
	run 3 preflight
	says "check Docker"
	echo "$program: runs ($emulator)"
done
