package config

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/components"
)

// OIDC is an identity provider whose tokens the API server accepts.
type OIDC struct {
	IssuerURL                     url.URL
	ClientID                      string
	UsernameClaim, UsernamePrefix string
	GroupsClaim, GroupsPrefix     string
	CA                            string // certificates in PEM
	CAFile                        string
}

// accessSettings are who may use the API server, and what it records.
var accessSettings = sharing(Setting{
	Group: GroupComponents, Verbs: controlPlanes, Shared: true, Change: OnCluster,
}, []Setting{
	{
		Field: "oidc.issuerURL", Flag: "oidc-issuer-url",
		Help: "URL of the OpenID provider whose tokens the API server accepts", as: issuer,
	},
	{Field: "oidc.clientID", Flag: "oidc-client-id", Help: "client ID for which the tokens must be issued"},
	{
		Field: "oidc.usernameClaim", Flag: "oidc-username-claim",
		Help: "claim of a token that contains the name of the user (empty: sub)",
	},
	{
		Field: "oidc.usernamePrefix", Flag: "oidc-username-prefix",
		Help: "prefix of the names of these users in the cluster (empty: oidc:, -: none)",
	},
	{
		Field: "oidc.groupsClaim", Flag: "oidc-groups-claim",
		Help: "claim of a token that contains the groups of the user (empty: no groups)",
	},
	{
		Field: "oidc.groupsPrefix", Flag: "oidc-groups-prefix",
		Help: "prefix of the names of these groups in the cluster (empty: oidc:)", check: on(groupsPrefix),
	},
	{
		Field: "oidc.ca", Flag: "oidc-ca",
		Help: "certificate authority of the OpenID provider, in PEM (empty: the system's)", check: on(certificates),
	},
	{
		Field: "oidc.caFile", Flag: "oidc-ca-file", Holds: "oidc.ca", Change: EachRun,
		Help: "file that contains oidc.ca; - is standard input; the content is saved",
	},
	{
		Field: "auditPolicy", Flag: "audit-policy",
		Help: "policy of the API server's audit log, as JSON or YAML (empty: that of kube-bootstrap)", as: mapping,
		check: on(components.AuditPolicy),
	},
	{
		Field: "auditPolicyFile", Flag: "audit-policy-file", Holds: "auditPolicy", Change: EachRun,
		Help: "file that contains auditPolicy; - is standard input; the content is saved",
	},
})

// issuer is the URL of an identity provider.
var issuer = kind("string", parseIssuer, urlText)

func parseIssuer(s string) (url.URL, error) {
	u, err := parseURL(s)
	further := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	if err != nil || u != (url.URL{}) && (u.Scheme != "https" || u.Host == "" || further) {
		return url.URL{}, errors.New("must be an https URL without user, query and fragment, " +
			"such as https://accounts.example.com")
	}
	return u, nil
}

// groupsPrefix refuses an empty prefix: with the name of a group of the cluster, a provider could make its
// users administrators.
func groupsPrefix(s string) string {
	if s == "-" || strings.HasPrefix(s, "system:") || strings.HasPrefix(s, "kube-bootstrap:") {
		return "must be a word that no group of the cluster begins with, such as oidc:"
	}
	return ""
}

func certificates(s string) string {
	const must = "must be certificates in PEM"
	rest := []byte(s)
	for found := 0; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			if found == 0 || strings.TrimSpace(string(rest)) != "" {
				return must
			}
			return ""
		}
		if _, err := x509.ParseCertificate(block.Bytes); block.Type != "CERTIFICATE" || err != nil {
			return must
		}
	}
}

// pairs calls missing for each field that another field requires.
func (o OIDC) pairs(missing func(field, because string)) {
	switch {
	case o.IssuerURL != (url.URL{}) && o.ClientID == "":
		missing("oidc.clientID", "oidc.issuerURL needs it; give --oidc-client-id, or the field in the file")
	case o.IssuerURL == (url.URL{}) && o != OIDC{CAFile: o.CAFile}:
		missing("oidc.issuerURL", "the other fields of oidc need it; give --oidc-issuer-url, or the field in the file")
	case o.GroupsPrefix != "" && o.GroupsClaim == "":
		missing("oidc.groupsClaim", "oidc.groupsPrefix needs it; give --oidc-groups-claim, or the field in the file")
	}
}
