package controlplane

import (
	"bytes"
	"net/url"
	"testing"

	apiserverv1 "k8s.io/apiserver/pkg/apis/apiserver/v1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

func TestOIDC(t *testing.T) {
	if got, err := authenticationConfig(config.OIDC{}); err != nil || !bytes.Equal(got, authentication) {
		t.Errorf("without a provider: %v\n%s", err, got)
	}
	for name, want := range map[string]struct {
		oidc                     config.OIDC
		user, userPrefix, groups string
	}{
		"least": {config.OIDC{}, "sub", "oidc:", ""},
		"all": {config.OIDC{UsernameClaim: "email", UsernamePrefix: "-", GroupsClaim: "roles", GroupsPrefix: "x:"},
			"email", "", "x:roles"},
	} {
		want.oidc.IssuerURL, want.oidc.ClientID = url.URL{Scheme: "https", Host: "id.example.com"}, "kube"
		data, err := authenticationConfig(want.oidc)
		var got apiserverv1.AuthenticationConfiguration
		if err == nil {
			err = yaml.UnmarshalStrict(data, &got)
		}
		if err != nil || len(got.JWT) != 1 || got.Anonymous == nil || len(got.Anonymous.Conditions) != 3 {
			t.Fatalf("%s: %v\n%s", name, err, data)
		}
		maps := got.JWT[0].ClaimMappings
		groups := maps.Groups.Claim
		if maps.Groups.Prefix != nil {
			groups = *maps.Groups.Prefix + groups
		}
		if maps.Username.Claim != want.user || *maps.Username.Prefix != want.userPrefix || groups != want.groups ||
			got.JWT[0].Issuer.Audiences[0] != "kube" {
			t.Errorf("%s: got %+v", name, maps)
		}
	}
}
