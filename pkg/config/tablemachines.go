package config

import "github.com/kube-bootstrap/kube-bootstrap/pkg/config/connection"

// machineSettings are the settings of a cluster whose nodes are machines.
var machineSettings = sharing(Setting{
	Group: GroupMachines, Verbs: ClusterUp | Named | Engine, Change: EachRun,
}, []Setting{{
	Field: "ssh.user", Flag: "ssh-user", check: on(connection.CheckUser),
	Help: "user on the machines: root, or a user with sudo (empty: that of ~/.ssh/config)",
}, {
	Field: "ssh.port", Flag: "ssh-port", as: kind("int", connection.ParsePort, connection.PortText),
	Help: "port of SSH on the machines (empty: that of ~/.ssh/config, or 22)",
}, {
	Field: "ssh.identityFile", Flag: "ssh-identity-file",
	Help: "private key that is offered first (empty: those of ~/.ssh/config and the agent)",
}, {
	Field: "ssh.proxyJump", Flag: "ssh-proxy-jump", check: on(connection.CheckProxyJump),
	Help: "hosts on the way to the machines: [USER@]HOST[:PORT], comma separated; none: a direct connection",
}, {
	Field: "ssh.acceptNewHostKeys", Flag: "accept-new-host-keys", Default: "false",
	Help: "accept the host key of a machine that known_hosts does not contain; a changed key is always refused",
}})
