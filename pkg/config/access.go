package config

import (
	"crypto/x509"
	"encoding/pem"
	"net/url"
	"strings"
)

func issuerURL(s string) string {
	u, err := url.Parse(s)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return "must be an https URL without user, query and fragment, such as https://accounts.example.com"
	}
	return ""
}

// groupsPrefix refuses an empty prefix: with the name of a group of the cluster,
// a provider could make its users administrators.
func groupsPrefix(s string) string {
	if s == "-" || strings.HasPrefix(s, "system:") {
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

// pairs names what of the provider is missing, and what is of no use without
// its URL.
func (o OIDC) pairs(missing func(field, because string)) {
	switch {
	case o.IssuerURL != "" && o.ClientID == "":
		missing("oidc.clientID", "oidc.issuerURL needs it; give --oidc-client-id, or the field in the file")
	case o.IssuerURL == "" && o != OIDC{CAFile: o.CAFile}:
		missing("oidc.issuerURL", "the other fields of oidc need it; give --oidc-issuer-url, or the field in the file")
	case o.GroupsPrefix != "" && o.GroupsClaim == "":
		missing("oidc.groupsClaim", "oidc.groupsPrefix needs it; give --oidc-groups-claim, or the field in the file")
	}
}
