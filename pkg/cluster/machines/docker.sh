# Installs Docker from packages of the distribution, starts and enables it. All output goes to the
# standard error, so that an error has it. $1 is the directory of kube-bootstrap on machines, $2 the
# package manager, $3 the directory with the packages, or "" for those of the repositories.
exec </dev/null >&2
set -e
export DEBIAN_FRONTEND=noninteractive

apt() { apt-get -y -o DPkg::Lock::Timeout=300 -o Dpkg::Options::=--force-confold "$@"; }

# from_repositories installs Docker with package manager $1. On RHEL, podman-docker provides the name
# docker, and list does not find it by that.
from_repositories() {
	case "$1" in
	apt-get) apt update && apt install docker.io ;;
	zypper) zypper --non-interactive install docker ;;
	apk) apk add --update-cache docker ;;
	dnf | yum)
		for package in moby-engine docker; do
			! "$1" -q list "$package" || { "$1" -y install "$package"; return; }
		done
		echo "the repositories have neither moby-engine nor docker"
		return 1
		;;
	esac
}

# from_files installs the packages of directory $2 with package manager $1, without network.
from_files() {
	case "$1" in
	# Without sources, apt cannot use the network. With --no-download, it does not install files either.
	apt-get)
		apt -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/dev/null -o APT::Default-Release= \
			install "$2"/*.deb
		;;
	zypper) zypper --non-interactive --no-remote install "$2"/*.rpm ;;
	apk) apk add --no-network "$2"/*.apk ;;
	dnf | yum) "$1" -y --disablerepo='*' install "$2"/*.rpm ;;
	esac
}

start() {
	if [ -d /run/systemd/system ]; then
		systemctl enable --now docker
	elif command -v rc-service; then
		rc-update add docker default
		rc-service docker start
	else
		! command -v update-rc.d || update-rc.d docker defaults
		service docker status || service docker start
	fi
}

mkdir -p -m 755 "$1"
touch "$1/docker.installing" # facts.sh finds no Docker until this script has ended
[ "$2" != apt-get ] || dpkg --configure -a || true # a killed run leaves packages without configuration
if [ -n "$3" ]; then from_files "$2" "$3"; else from_repositories "$2"; fi
command -v dockerd || { echo "the packages do not contain dockerd"; exit 1; }
start
rm -rf "$1/docker.installing" ${3:+"$3"}
