package dump

import (
	"strings"
	"testing"
)

// TestRedactContainers has what Docker prints about containers.
func TestRedactContainers(t *testing.T) {
	got := string(Redact(redactObjects([]byte(`[{"Name":"/etcd","Args":["--password","hunter22"],"HostConfig":{"Memory":2147483648},
		"Config":{"Env":["GREETING=hunter22","PATH"],"Cmd":["--name=etcd"]}}]`))))
	if strings.Contains(got, "hunter22") {
		t.Errorf("a secret is in\n%s", got)
	}
	for _, kept := range []string{"- GREETING=(removed)", "Memory: 2147483648", "--name=etcd"} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is missing in\n%s", kept, got)
		}
	}
}

// TestObjectsOfUsers: fields that may contain a secret are dropped, whatever they are named.
func TestObjectsOfUsers(t *testing.T) {
	const objects = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: app, namespace: default}
  data: {app.properties: "x=hunter22", name: hunter22}
- apiVersion: v1
  kind: Pod
  metadata:
    name: web
    namespace: shop
    labels: {app: web}
    annotations: {kubectl.kubernetes.io/last-applied-configuration: "hunter22", note: hunter22}
  spec:
    nodeName: worker-1
    containers:
    - name: web
      image: nginx
      args: ["-phunter22"]
      env: [{name: GREETING, value: hunter22}]
      ports: [{containerPort: 80}]
      resources: {limits: {cpu: 100m}}
      livenessProbe: {httpGet: {port: 80, httpHeaders: [{name: Authorization, value: hunter22}]}}
      lifecycle: {postStart: {exec: {command: [login, hunter22]}}}
  status:
    phase: Running
    conditions: [{type: Ready, status: "False", reason: ContainersNotReady, message: "hunter22"}]
    containerStatuses: [{name: web, restartCount: 3, state: {terminated: {exitCode: 2, reason: Error, message: hunter22}}}]
- apiVersion: batch/v1
  kind: CronJob
  metadata: {name: job, namespace: shop}
  spec: {schedule: "* * * * *", jobTemplate: {spec: {template: {spec: {containers: [{name: one, command: [mysql, -phunter22]}]}}}}}
- apiVersion: apps/v1
  kind: ControllerRevision
  metadata: {name: web-1, namespace: shop}
  data: {spec: {template: {spec: {containers: [{name: web, command: [run, hunter22]}]}}}}
  revision: 1
- apiVersion: example.com/v1
  kind: Mail
  metadata: {name: mail, namespace: shop}
  spec: {name: hunter22}
  data: hunter22
  status: {phase: hunter22, conditions: [{type: Sent, status: "True", message: hunter22}]}
- apiVersion: example.com/v1
  kind: Node
  metadata: {name: database}
  spec: {name: hunter22}
- apiVersion: v1
  kind: PersistentVolume
  metadata: {name: disk}
  spec: {capacity: {storage: 1Gi}, csi: {driver: x, volumeAttributes: {a: hunter22}}}
  status: {phase: Bound}
`
	got := string(redactObjects([]byte(objects)))
	if strings.Contains(got, "hunter22") {
		t.Errorf("a secret is in\n%s", got)
	}
	for _, kept := range []string{
		"app: web", "nodeName: worker-1", "image: nginx", "containerPort: 80", "cpu: 100m",
		"reason: ContainersNotReady", "restartCount: 3", "exitCode: 2",
		"schedule: '* * * * *'", "name: mail", "type: Sent", "name: database", "storage: 1Gi", "phase: Bound",
	} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is missing in\n%s", kept, got)
		}
	}
}

// TestObjectsOfTheSystem: a bug report needs their settings.
func TestObjectsOfTheSystem(t *testing.T) {
	const objects = `apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: coredns, namespace: kube-system}
  data: {Corefile: "forward . /etc/resolv.conf"}
- apiVersion: v1
  kind: Pod
  metadata: {name: etcd, namespace: kube-system, annotations: {note: hunter22, kubernetes.io/config.source: file}}
  spec: {containers: [{name: etcd, command: [etcd, --name=master-1, --password, hunter22], env: [{name: GREETING, value: hunter22}]}]}
- apiVersion: v1
  kind: Node
  metadata: {name: worker-1, annotations: {note: hunter22}}
  spec: {podCIDR: 10.1.7.0/24, token: hunter22}
`
	got := string(redactObjects([]byte(objects)))
	if strings.Contains(got, "hunter22") {
		t.Errorf("a secret is in\n%s", got)
	}
	for _, kept := range []string{
		"forward . /etc/resolv.conf", "config.source: file", "--name=master-1", "name: GREETING",
		"podCIDR: 10.1.7.0/24",
	} {
		if !strings.Contains(got, kept) {
			t.Errorf("%s is missing in\n%s", kept, got)
		}
	}
	if got := string(redactObjects([]byte("Error: hunter22\n\tx"))); strings.Contains(got, "hunter22") {
		t.Errorf("what is no YAML became %s", got)
	}
}
