# Gives a complete part its name, and records its digest.
[ "$(sha256sum <"$part" | cut -d ' ' -f 1)" = "$3" ] || { rm -f "$part"; echo "the digest of $1 differs" >&2; exit 1; }
chmod "$2" "$part"
mv -f "$part" "$1"
{ echo "$3"; stat -c '%s %Y' "$1"; } >"$1.digest"
find "$(dirname "$1")" -maxdepth 1 -name "$(basename "$1").part-*" -delete
