set -e
for program in docker ctr; do
	command -v "$program" >/dev/null && continue
	echo "the command $program is missing: install docker-cli or containerd" >&2
	exit 1
done
f=$(mktemp -p /var/lib)
trap 'rm -f "$f"' EXIT
cat >"$f"
docker load -q -i "$f" >/dev/null
ctr -n k8s.io images import "$f" >/dev/null
