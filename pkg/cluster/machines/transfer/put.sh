# Receives a file, and continues a part of it that is there. $4 is the number of bytes that the part must
# have before, $5 is .gz if the file is sent compressed. place.sh follows.
sent="$part$5"
touch "$sent"
[ "$(stat -c %s "$sent")" = "$4" ] || : >"$sent"
[ "$(stat -c %s "$sent")" = "$4" ] || { echo "another run writes $sent" >&2; exit 1; }
cat >>"$sent"
[ -z "$5" ] || gzip -dc <"$sent" >"$part" || { rm -f "$part" "$sent"; echo "$sent is damaged" >&2; exit 1; }
