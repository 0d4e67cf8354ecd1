find host/bin kube-bootstrap/bin -type f -print0
for layer in containerd/*/snapshots/*/fs docker*/overlay2/*/diff; do
	[ -n "$(ls -A "${layer%/*}/work")" ] || find "$layer" -type f -size +64k -print0
done
