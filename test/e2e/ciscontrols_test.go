//go:build e2e

package e2e

var controls = []control{
	{
		id: "1.1.1", title: "API server manifest: mode 600, root", host: "master",
		passes: `private $K/manifests/kube-apiserver.yaml`,
	},
	{
		id: "1.1.3", title: "controller manager manifest: mode 600, root", host: "master",
		passes: `private $K/manifests/kube-controller-manager.yaml`,
	},
	{
		id: "1.1.5", title: "scheduler manifest: mode 600, root", host: "master",
		passes: `private $K/manifests/kube-scheduler.yaml`,
	},
	{id: "1.1.9", title: "CNI configuration: mode 600, root", passes: `private /etc/cni/net.d/*.conflist`},
	{
		id: "1.1.11", title: "etcd data directory: mode 700", host: "master",
		passes: `[ "$(stat -c %a /var/lib/kube-bootstrap/etcd 2>/dev/null || ` +
			`stat -c %a "$(docker -H unix:///run/docker-bootstrap.sock inspect -f '{{range .Mounts}}` +
			`{{if eq .Destination "/var/lib/etcd"}}{{.Source}}{{end}}{{end}}' etcd)")" = 700 ]`,
	},
	{
		id: "1.1.12", title: "etcd data directory: owner etcd", host: "master", passes: `id etcd`,
		why: "etcd runs as root without capabilities",
	},
	{id: "1.1.13", title: "admin.conf, super-admin.conf: mode 600, root", host: "master", passes: `private $K/*.conf`},
	{id: "1.1.19", title: "PKI directory: root", passes: `owned $K/pki`},
	{id: "1.1.20", title: "PKI certificates: mode 644", passes: `[ -z "$(find $K/pki -name '*.crt' -perm /133)" ]`},
	{id: "1.1.21", title: "PKI keys: mode 600", passes: `[ -z "$(find $K/pki -name '*.key' -perm /177)" ]`},
	{
		id: "1.2.1", title: "no anonymous requests except for health checks", host: "master",
		passes: `[ "$(for path in livez version api api/v1/nodes; ` +
			`do curl -sko /dev/null -w '%{http_code} ' https://127.0.0.1:6443/$path; done)" = "200 401 401 401 " ]`,
	},
	{id: "1.2.2", title: "no token file", host: "master", passes: `lacks kube-apiserver '^--token-auth-file'`},
	{
		id: "1.2.3", title: "DenyServiceExternalIPs", host: "master",
		passes: `has kube-apiserver '^--enable-admission-plugins=.*DenyServiceExternalIPs'`,
	},
	{
		id: "1.2.4", title: "kubelet client certificate", host: "master",
		passes: `has kube-apiserver '^--kubelet-client-certificate='`,
	},
	{
		id: "1.2.5", title: "kubelet certificate authority", host: "master",
		passes: `has kube-apiserver '^--kubelet-certificate-authority='`,
	},
	{
		id: "1.2.6", title: "authorization is not AlwaysAllow", host: "master",
		passes: `lacks kube-apiserver '^--authorization-mode=.*AlwaysAllow' && ` +
			`has kube-apiserver '^--authorization-config=' && ` +
			`! grep -q AlwaysAllow /etc/kubernetes/apiserver/authorization.yaml`,
	},
	{
		id: "1.2.7", title: "authorization includes Node", host: "master",
		passes: `grep -q 'type: Node' /etc/kubernetes/apiserver/authorization.yaml`,
	},
	{
		id: "1.2.8", title: "authorization includes RBAC", host: "master",
		passes: `grep -q 'type: RBAC' /etc/kubernetes/apiserver/authorization.yaml`,
	},
	{
		id: "1.2.9", title: "EventRateLimit", host: "master",
		passes: `has kube-apiserver '^--enable-admission-plugins=.*EventRateLimit'`,
	},
	{
		id: "1.2.10", title: "no AlwaysAdmit", host: "master",
		passes: `lacks kube-apiserver '^--enable-admission-plugins=.*AlwaysAdmit'`,
	},
	{
		id: "1.2.11", title: "AlwaysPullImages", host: "master",
		passes: `has kube-apiserver '^--enable-admission-plugins=.*AlwaysPullImages'`,
		why:    "a host without a registry could start no pod",
	},
	{
		id: "1.2.12", title: "ServiceAccount is enabled", host: "master",
		passes: `lacks kube-apiserver '^--disable-admission-plugins=.*ServiceAccount'`,
	},
	{
		id: "1.2.13", title: "NamespaceLifecycle is enabled", host: "master",
		passes: `lacks kube-apiserver '^--disable-admission-plugins=.*NamespaceLifecycle'`,
	},
	{
		id: "1.2.14", title: "NodeRestriction", host: "master",
		passes: `has kube-apiserver '^--enable-admission-plugins=.*NodeRestriction'`,
	},
	{
		id: "1.2.15", title: "API server: no profiling", host: "master",
		passes: `has kube-apiserver '^--profiling=false'`,
	},
	{id: "1.2.16", title: "audit log", host: "master", passes: `has kube-apiserver '^--audit-log-path='`},
	{id: "1.2.17", title: "audit log: 30 days", host: "master", passes: `has kube-apiserver '^--audit-log-maxage=30'`},
	{
		id: "1.2.18", title: "audit log: 10 files", host: "master",
		passes: `has kube-apiserver '^--audit-log-maxbackup=10'`,
	},
	{
		id: "1.2.19", title: "audit log: files of 100 MB", host: "master",
		passes: `has kube-apiserver '^--audit-log-maxsize=100'`,
	},
	{
		id: "1.2.21", title: "service accounts are looked up", host: "master",
		passes: `lacks kube-apiserver '^--service-account-lookup=false'`,
	},
	{
		id: "1.2.22", title: "service account key", host: "master",
		passes: `has kube-apiserver '^--service-account-key-file='`,
	},
	{
		id: "1.2.23", title: "API server: certificate for etcd", host: "master",
		passes: `has kube-apiserver '^--etcd-certfile='`,
	},
	{
		id: "1.2.24", title: "API server: serving certificate", host: "master",
		passes: `has kube-apiserver '^--tls-cert-file='`,
	},
	{
		id: "1.2.25", title: "API server: client authority", host: "master",
		passes: `has kube-apiserver '^--client-ca-file='`,
	},
	{
		id: "1.2.26", title: "API server: authority of etcd", host: "master",
		passes: `has kube-apiserver '^--etcd-cafile='`,
	},
	{
		id: "1.2.27", title: "encryption at rest", host: "master",
		passes: `has kube-apiserver '^--encryption-provider-config='`,
	},
	{
		id: "1.2.28", title: "encryption provider", host: "master",
		passes: `grep -q secretbox $K/apiserver/encryption.yaml`,
	},
	{
		id: "1.2.29", title: "API server: strong cipher suites only", host: "master",
		passes: `has kube-apiserver '^--tls-cipher-suites=' && ` +
			`lacks kube-apiserver '^--tls-cipher-suites=.*(CBC|_RC4_|WITH_3DES|TLS_RSA_)'`,
	},
	{
		id: "1.2.30", title: "service account tokens are not extended", host: "master",
		passes: `has kube-apiserver '^--service-account-extend-token-expiration=false'`,
	},
	{
		id: "1.3.1", title: "limit of terminated pods", host: "master",
		passes: `has kube-controller-manager '^--terminated-pod-gc-threshold='`,
	},
	{
		id: "1.3.2", title: "controller manager: no profiling", host: "master",
		passes: `has kube-controller-manager '^--profiling=false'`,
	},
	{
		id: "1.3.3", title: "an account for each controller", host: "master",
		passes: `has kube-controller-manager '^--use-service-account-credentials=true'`,
	},
	{
		id: "1.3.4", title: "service account private key", host: "master",
		passes: `has kube-controller-manager '^--service-account-private-key-file='`,
	},
	{
		id: "1.3.5", title: "root authority for pods", host: "master",
		passes: `has kube-controller-manager '^--root-ca-file='`,
	},
	{
		id: "1.3.6", title: "kubelet serving certificates are rotated", host: "master",
		passes: `lacks kube-controller-manager 'RotateKubeletServerCertificate=false'`,
	},
	{
		id: "1.3.7", title: "controller manager: local address", host: "master",
		passes: `has kube-controller-manager '^--bind-address=127.0.0.1'`,
	},
	{id: "1.4.1", title: "scheduler: no profiling", host: "master", passes: `has kube-scheduler '^--profiling=false'`},
	{
		id: "1.4.2", title: "scheduler: local address", host: "master",
		passes: `has kube-scheduler '^--bind-address=127.0.0.1'`,
	},
	{
		id: "2.1", title: "etcd: serving certificate", host: "master",
		passes: `has etcd '^--cert-file=' && has etcd '^--key-file='`,
	},
	{id: "2.2", title: "etcd: client certificates", host: "master", passes: `has etcd '^--client-cert-auth(=true)?$'`},
	{
		id: "2.3", title: "etcd: no self-signed certificates", host: "master",
		passes: `lacks etcd '^--auto-tls(=true)?$'`,
	},
	{id: "2.4", title: "etcd: peer certificate", host: "master", passes: `has etcd '^--peer-cert-file='`},
	{
		id: "2.5", title: "etcd: peer client certificates", host: "master",
		passes: `has etcd '^--peer-client-cert-auth(=true)?$'`,
	},
	{
		id: "2.6", title: "etcd: no self-signed peer certificates", host: "master",
		passes: `lacks etcd '^--peer-auto-tls(=true)?$'`,
	},
	{
		id: "2.7", title: "etcd: authorities of its own", host: "master",
		passes: `! cmp -s $K/pki/ca.crt $K/pki/etcd/ca.crt && ! cmp -s $K/pki/etcd/ca.crt $K/pki/etcd/peer-ca.crt`,
	},
	{
		id: "3.1.1", title: "no client certificates for users", host: "master", passes: `! [ -e $K/admin.conf ]`,
		why: "the administrator's kubeconfig is a client certificate",
	},
	{id: "3.2.1", title: "audit policy", host: "master", passes: `has kube-apiserver '^--audit-policy-file='`},
	{
		id: "3.2.2", title: "audit policy covers Secrets", host: "master",
		passes: `kc -n kube-system get secrets >/dev/null && sleep 1 && ` +
			`grep -q '"resource":"secrets"' /var/log/kubernetes/audit/audit.log`,
	},
	{id: "4.1.5", title: "kubelet.conf: mode 600, root", passes: `private $K/kubelet.conf`},
	{
		id: "4.1.7", title: "client authority of the kubelet: mode 644, root",
		passes: `owned $K/pki/ca.crt && [ -z "$(find $K/pki/ca.crt -perm /133)" ]`,
	},
	{id: "4.1.9", title: "kubelet configuration: mode 600, root", passes: `private /var/lib/kubelet/config.yaml`},
	{
		id: "4.2.1", title: "kubelet: no anonymous requests",
		passes: `grep -A1 'anonymous:' /var/lib/kubelet/config.yaml | grep -q 'enabled: false'`,
	},
	{id: "4.2.2", title: "kubelet: authorization by the API server", passes: `setting 'mode: Webhook'`},
	{id: "4.2.3", title: "kubelet: client authority", passes: `setting 'clientCAFile: /'`},
	{id: "4.2.4", title: "kubelet: no read-only port", passes: `! setting 'readOnlyPort: [1-9]'`},
	{id: "4.2.5", title: "kubelet: idle connections end", passes: `! setting 'streamingConnectionIdleTimeout: -'`},
	{id: "4.2.6", title: "kubelet: iptables chains", passes: `! setting 'makeIPTablesUtilChains: false'`},
	{
		id: "4.2.7", title: "kubelet: no other host name", passes: `lacks kubelet '^--hostname-override'`,
		why: "the name of a node is a setting",
	},
	{id: "4.2.8", title: "kubelet: event rate", passes: `! setting 'eventRecordQPS: -'`},
	{
		id: "4.2.9", title: "kubelet: serving certificate of the cluster",
		passes: `setting 'serverTLSBootstrap: true' || setting 'tlsCertFile: /'`,
	},
	{id: "4.2.10", title: "kubelet: client certificate is rotated", passes: `setting 'rotateCertificates: true'`},
	{
		id: "4.2.12", title: "kubelet: strong cipher suites only",
		passes: `setting '^tlsCipherSuites:' && ! setting 'CBC|_RC4_|WITH_3DES|- TLS_RSA_'`,
	},
	{id: "4.2.13", title: "kubelet: limit of processes of a pod", passes: `setting 'podPidsLimit: [1-9]'`},
	{id: "4.2.14", title: "kubelet: seccomp by default", passes: `setting 'seccompDefault: true'`},
	{
		id: "4.2.15", title: "kubelet: IPAddressDeny", passes: `systemctl cat docker | grep -q ^IPAddressDeny`,
		why: "the kubelet is a container, and the list of clients is the user's",
	},
	{
		id: "4.3.1", title: "kube-proxy: local metrics",
		passes: `kc -n kube-system get configmap kube-proxy -o yaml | grep -q 'metricsBindAddress: 127.0.0.1'`,
		host:   "master",
	},
	{
		id: "5.1.5", title: "no token in pods by default", host: "master",
		passes: `kc get serviceaccount default -o yaml | grep -q 'automountServiceAccountToken: false'`,
		why:    "workloads expect a token, which has no permission",
	},
	{
		id: "5.1.7", title: "no use of system:masters", host: "master", passes: `! [ -e $K/super-admin.conf ]`,
		why: "super-admin.conf exists until an administrator removes it",
	},
	{
		id: "5.2.2", title: "no privileged containers", host: "master",
		passes: `refused "$(container 'privileged: true')"`,
	},
	{id: "5.2.3", title: "no host PID", host: "master", passes: `refused "hostPID: true, $(container)"`},
	{id: "5.2.4", title: "no host IPC", host: "master", passes: `refused "hostIPC: true, $(container)"`},
	{id: "5.2.5", title: "no host network", host: "master", passes: `refused "hostNetwork: true, $(container)"`},
	{
		id: "5.2.6", title: "no privilege escalation", host: "master",
		passes: `refused "$(container 'allowPrivilegeEscalation: true')"`,
		why:    "the level of new namespaces is baseline",
	},
	{
		id: "5.2.7", title: "no root containers", host: "master", passes: `refused "$(container 'runAsUser: 0')"`,
		why: "the level of new namespaces is baseline",
	},
	{
		id: "5.2.8", title: "no NET_RAW", host: "master", passes: `refused "$(container)"`,
		why: "the level of new namespaces is baseline",
	},
	{
		id: "5.2.9", title: "no added capabilities", host: "master",
		passes: `refused "$(container 'capabilities: {add: [SYS_ADMIN]}')"`,
	},
	{
		id: "5.2.10", title: "no default capabilities", host: "master", passes: `refused "$(container)"`,
		why: "the level of new namespaces is baseline",
	},
	{
		id: "5.2.12", title: "no hostPath volumes", host: "master",
		passes: `refused "volumes: [{name: a, hostPath: {path: /}}], $(container)"`,
	},
	{
		id: "5.2.13", title: "no host ports", host: "master",
		passes: `refused "containers: [{name: a, image: a, ports: [{containerPort: 80, hostPort: 80}]}]"`,
	},
	{
		id: "5.3.1", title: "network plugin supports NetworkPolicy", host: "master",
		passes: `kc get daemonsets -A -o name | grep -qE "calico|cilium|network-polic"`,
		why:    "the bridge plugin does not; another plugin can be used",
	},
	{
		id: "5.3.2", title: "every namespace has a NetworkPolicy", host: "master",
		passes: `kc -n default get networkpolicies -o name | grep -q .`, why: "nothing would enforce it",
	},
	{
		id: "5.5.1", title: "image provenance", host: "master",
		passes: `has kube-apiserver '^--enable-admission-plugins=.*ImagePolicyWebhook'`,
		why:    "the user chooses the images",
	},
	{id: "5.6.2", title: "seccomp in pods", host: "worker", passes: `setting 'seccompDefault: true'`},
}
