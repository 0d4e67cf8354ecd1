has() { command -v "$1" >/dev/null; }
systemd() { [ -d /run/systemd/system ]; }
main() { docker -H unix:///run/docker.sock "$@"; }
bootstrap() { [ ! -d /var/lib/docker-bootstrap ] || docker -H unix:///run/docker-bootstrap.sock "$@"; }
kubectl() {
	[ -e /etc/kubernetes/admin.conf ] || return 0
	KUBECONFIG=/etc/kubernetes/admin.conf "$0" kubectl "$@" --request-timeout 20s
}
