# Receives a file by its digest, and continues a part of it that is there. $1 is the path, $2 the mode,
# $3 the digest, $4 the number of bytes that the part must have before.
set -e
umask 077
part="$1.part-$3"
mkdir -p -m 755 "$(dirname "$1")"
touch "$part"
[ "$(stat -c %s "$part")" = "$4" ] || : >"$part"
[ "$(stat -c %s "$part")" = "$4" ] || { echo "another run writes $part" >&2; exit 1; }
cat >>"$part"
[ "$(sha256sum <"$part" | cut -d ' ' -f 1)" = "$3" ] || { rm -f "$part"; echo "the digest of $1 differs" >&2; exit 1; }
chmod "$2" "$part"
mv -f "$part" "$1"
{ echo "$3"; stat -c '%s %Y' "$1"; } >"$1.digest"
find "$(dirname "$1")" -maxdepth 1 -name "$(basename "$1").part-*" -delete
