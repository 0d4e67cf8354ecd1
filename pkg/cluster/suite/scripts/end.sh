container=$1 kubeconfig=$2
if docker inspect "$container" >/dev/null 2>&1; then
	docker exec "$container" /bin/sh -c 'kill -INT -1' >/dev/null 2>&1
	timeout 60 docker wait "$container" >/dev/null 2>&1
	docker rm -f "$container" >/dev/null 2>&1
fi
kubectl() { docker exec kubelet kubectl --kubeconfig "$kubeconfig" "$@"; }
left=$(kubectl get namespaces -l e2e-run -o name) || exit
[ -n "$left" ] || exit 0
kubectl delete --wait=false $left >/dev/null
kubectl wait --for=delete --timeout=30s $left >/dev/null 2>&1
for namespace in $(kubectl get namespaces -l e2e-run -o name); do
	for kind in $(kubectl api-resources --namespaced --verbs=list,patch -o name); do
		for object in $(kubectl -n "${namespace#namespace/}" get "$kind" -o name 2>/dev/null); do
			kubectl -n "${namespace#namespace/}" patch "$object" --type=merge -p '{"metadata":{"finalizers":null}}' >/dev/null 2>&1
		done
	done
done
kubectl wait --for=delete --timeout=2m $left >/dev/null
