package components

import (
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/apiserver/pkg/audit/policy"
	"sigs.k8s.io/yaml"
)

// AuditPolicy says what an audit policy, as JSON, must be: what the API server
// loads, without unknown fields, which it would ignore.
func AuditPolicy(s string) string {
	var given auditv1.Policy
	if err := yaml.UnmarshalStrict([]byte(s), &given); err != nil {
		return "must be the fields of an audit Policy: " + plainly(err)
	}
	if given.APIVersion != auditv1.SchemeGroupVersion.String() || given.Kind != "Policy" {
		return "must have the lines \"apiVersion: " + auditv1.SchemeGroupVersion.String() + "\" and \"kind: Policy\""
	}
	if _, err := policy.LoadPolicyFromBytes([]byte(s)); err != nil {
		return "is no policy that the API server accepts: " + err.Error()
	}
	return ""
}
