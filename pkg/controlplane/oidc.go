package controlplane

import (
	"cmp"
	"fmt"
	"strings"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// oidcPrefix keeps the users and groups of a provider apart from those of the
// cluster, unless a setting names another prefix.
const oidcPrefix = "oidc:"

// authenticationConfig returns the file that states whom the API server accepts.
func authenticationConfig(o config.OIDC) ([]byte, error) {
	if o.IssuerURL == "" {
		return authentication, nil
	}
	var all apiserverv1.AuthenticationConfiguration
	if err := yaml.UnmarshalStrict(authentication, &all); err != nil {
		return nil, fmt.Errorf("%s: %w", authenticationFile, err)
	}
	all.JWT = append(all.JWT, provider(o))
	return yaml.Marshal(all)
}

func provider(o config.OIDC) apiserverv1.JWTAuthenticator {
	user := strings.TrimPrefix(cmp.Or(o.UsernamePrefix, oidcPrefix), "-")
	p := apiserverv1.JWTAuthenticator{Issuer: apiserverv1.Issuer{URL: o.IssuerURL, Audiences: []string{o.ClientID}, CertificateAuthority: o.CA}}
	p.ClaimMappings.Username = apiserverv1.PrefixedClaimOrExpression{Claim: cmp.Or(o.UsernameClaim, "sub"), Prefix: &user}
	if o.GroupsClaim != "" {
		p.ClaimMappings.Groups = apiserverv1.PrefixedClaimOrExpression{Claim: o.GroupsClaim, Prefix: new(cmp.Or(o.GroupsPrefix, oidcPrefix))}
	}
	p.UserValidationRules = []apiserverv1.UserValidationRule{
		{Expression: "!user.username.startsWith('system:')", Message: "the cluster has users with this prefix"},
		{Expression: "user.groups.all(group, !group.startsWith('system:'))", Message: "the cluster has groups with this prefix"},
	}
	return p
}
