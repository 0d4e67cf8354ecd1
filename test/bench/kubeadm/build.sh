# build.sh VERSION OUT: kubeadm from its Go module, whose staging modules have
# versions of their own.
set -eu
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export GOFLAGS=-mod=mod GOWORK=off CGO_ENABLED=0
printf 'module kubeadm\n\ngo 1.26\n' >go.mod
mod=$(go list -m -f '{{.GoMod}}' "k8s.io/kubernetes@$1")
{
	echo "require k8s.io/kubernetes $1"
	sed -n 's|^\s*\(replace \)\?\(k8s.io/[^ ]*\) => \./staging/.*|replace \2 => \2 v0.'"${1#v1.}"'|p' "$mod"
} >>go.mod
cat >main.go <<'GO'
package main

import (
	"k8s.io/kubernetes/cmd/kubeadm/app"
	"k8s.io/kubernetes/cmd/kubeadm/app/util/errors"
)

func main() { errors.HandleError(app.Run()) }
GO
v=k8s.io/component-base/version
minor=${1#v1.}
go build -trimpath -ldflags "-s -w -X $v.gitVersion=$1 -X $v.gitMajor=1 -X $v.gitMinor=${minor%%.*}" -o "$2" .
