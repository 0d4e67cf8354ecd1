package kube

import (
	"strings"
	"testing"
)

const liveService = `apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  uid: 7
  labels: {k8s-app: kube-dns, other: label}
  finalizers: [a, b]
  managedFields:
  - {manager: kubectl-edit, operation: Update, apiVersion: v1, fieldsV1: {"f:metadata": {"f:labels": {"f:other": {}}}}}
  - manager: kube-bootstrap
    operation: Apply
    apiVersion: v1
    fieldsV1:
      f:metadata:
        f:labels: {"f:k8s-app": {}}
        f:finalizers: {".": {}, 'v:"b"': {}}
      f:spec:
        f:clusterIP: {}
        f:selector: {}
        f:ports:
          'k:{"port":53,"protocol":"TCP"}': {".": {}, "f:port": {}, "f:name": {}}
spec:
  clusterIP: 10.96.0.10
  selector: {k8s-app: kube-dns}
  sessionAffinity: None
  ports:
  - {name: dns, port: 53, protocol: UDP, targetPort: 53}
  - {name: dns-tcp, port: 53, protocol: TCP, targetPort: 53}
`

const appliedService = `apiVersion: v1
kind: Service
metadata:
  name: kube-dns
  namespace: kube-system
  labels: {k8s-app: kube-dns}
  finalizers: [b]
spec:
  clusterIP: 10.96.0.10
  selector: {k8s-app: kube-dns}
  ports:
  - {name: dns-tcp, port: 53}
`

// TestApplied changes one line at a time of the live object or of the manifest;
// each change must lead to a dry run.
func TestApplied(t *testing.T) {
	one := func(manifest, from, to string) *Object {
		t.Helper()
		if !strings.Contains(manifest, from) {
			t.Fatalf("%q is not in the manifest", from)
		}
		all, err := Objects([]byte(strings.Replace(manifest, from, to, 1)))
		if err != nil {
			t.Fatal(err)
		}
		return all[0]
	}
	if !applied(one(liveService, "", ""), one(appliedService, "", "")) {
		t.Error("the same fields with the same values are reported as changed")
	}
	for from, to := range map[string]string{
		"clusterIP: 10.96.0.10":        "clusterIP: 10.96.0.11", // the value of another
		`"f:port": {}, "f:name": {}`:   `"f:port": {}`,          // a field that another manager took
		"manager: kube-bootstrap":      "manager: kubectl",
		"operation: Apply":             "operation: Update",
		"    apiVersion: v1\n    fiel": "    apiVersion: v2\n    fiel",
		`'v:"b"': {}`:                  `'v:"a"': {}`,
		"name: dns-tcp, port: 53":      "name: dns-tcp, port: 54",
		`"f:k8s-app": {}`:              `"f:k8s-app": {}, "f:gone": {}`,
		"f:clusterIP: {}":              "f:clusterIP: 3",
		`'k:{"port":53,`:               `'k:{"port":`,
	} {
		if live := one(liveService, from, to); applied(live, one(appliedService, "", "")) != (to == "f:clusterIP: 3") {
			t.Errorf("%s -> %s in the live object", from, to)
		}
	}
	for from, to := range map[string]string{
		"10.96.0.10":          "10.96.0.11",
		"selector: {k8s-app":  "selector: {app",
		"  finalizers: [b]\n": "",
		// the same value, but not ours yet
		"  clusterIP: 10.96.0.10": "  clusterIP: 10.96.0.10\n  sessionAffinity: None",
		"port: 53":                "port: 53, targetPort: 53",
	} {
		if applied(one(liveService, "", ""), one(appliedService, from, to)) {
			t.Errorf("%s -> %s in the manifest", from, to)
		}
	}
	account := "{apiVersion: v1, kind: ServiceAccount, metadata: {name: coredns}}"
	if !applied(one(account, "", ""), one(account, "", "")) {
		t.Error("an object without fields is reported as changed")
	}
}
