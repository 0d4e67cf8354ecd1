package config

import "github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"

// OIDC is an identity provider that the API server accepts tokens of, besides
// certificates.
type OIDC struct {
	IssuerURL, ClientID           string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	CA                            string // certificates in PEM
	CAFile                        string
}

// accessSettings are who may use the API server, and what it records.
var accessSettings = []Setting{
	{
		Field: "oidc.issuerURL", Flag: "oidc-issuer-url", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help:  "URL of the OpenID provider whose tokens the API server accepts",
		at:    text(func(c *Config) *string { return &c.OIDC.IssuerURL }),
		check: issuerURL,
	},
	{
		Field: "oidc.clientID", Flag: "oidc-client-id", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "client that the tokens must be issued for",
		at:   text(func(c *Config) *string { return &c.OIDC.ClientID }),
	},
	{
		Field: "oidc.usernameClaim", Flag: "oidc-username-claim", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "claim of a token that contains the name of the user (empty: sub)",
		at:   text(func(c *Config) *string { return &c.OIDC.UsernameClaim }),
	},
	{
		Field: "oidc.usernamePrefix", Flag: "oidc-username-prefix", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "beginning of the names of these users in the cluster (empty: oidc:, -: none)",
		at:   text(func(c *Config) *string { return &c.OIDC.UsernamePrefix }),
	},
	{
		Field: "oidc.groupsClaim", Flag: "oidc-groups-claim", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help: "claim of a token that contains the groups of the user (empty: no groups)",
		at:   text(func(c *Config) *string { return &c.OIDC.GroupsClaim }),
	},
	{
		Field: "oidc.groupsPrefix", Flag: "oidc-groups-prefix", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help:  "beginning of the names of these groups in the cluster (empty: oidc:)",
		at:    text(func(c *Config) *string { return &c.OIDC.GroupsPrefix }),
		check: groupsPrefix,
	},
	{
		Field: "oidc.ca", Flag: "oidc-ca", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help:  "certificate authority of the OpenID provider, in PEM (empty: the system's)",
		at:    text(func(c *Config) *string { return &c.OIDC.CA }),
		check: certificates,
	},
	{
		Field: "oidc.caFile", Flag: "oidc-ca-file", Group: GroupComponents, Verbs: controlPlanes, Holds: "oidc.ca", Change: EachRun,
		Help: "file that holds oidc.ca, - for standard input; its content is kept",
		at:   text(func(c *Config) *string { return &c.OIDC.CAFile }),
	},
	{
		Field: "auditPolicy", Flag: "audit-policy", Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
		Help:  "policy of the API server's audit log, as JSON or YAML (empty: that of kube-bootstrap)",
		at:    mapping(func(c *Config) *string { return &c.AuditPolicy }),
		check: components.AuditPolicy,
	},
	{
		Field: "auditPolicyFile", Flag: "audit-policy-file", Group: GroupComponents, Verbs: controlPlanes, Holds: "auditPolicy", Change: EachRun,
		Help: "file that holds auditPolicy, - for standard input; its content is kept",
		at:   text(func(c *Config) *string { return &c.AuditPolicyFile }),
	},
}
