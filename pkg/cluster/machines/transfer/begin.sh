# Begins a file that a machine gets by its digest. $1 is the path, $2 the mode, $3 the digest.
set -e
umask 077
part="$1.part-$3"
mkdir -p -m 755 "$(dirname "$1")"
