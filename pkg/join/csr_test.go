package join

import (
	"fmt"
	"slices"
	"testing"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestNoNodeDelaysTheRequestsOfOthers: a node may make any number of requests, with names that
// the API server lists first.
func TestNoNodeDelaysTheRequestsOfOthers(t *testing.T) {
	var all []certificatesv1.CertificateSigningRequest
	add := func(name, user string, age time.Duration, conditions ...certificatesv1.RequestConditionType) {
		csr := certificatesv1.CertificateSigningRequest{
			ObjectMeta: metav1.ObjectMeta{Name: name, CreationTimestamp: metav1.NewTime(time.Unix(1e9, 0).Add(-age))},
		}
		csr.Spec.Username, csr.Spec.Groups = user, []string{nodesGroup}
		for _, c := range conditions {
			csr.Status.Conditions = append(csr.Status.Conditions,
				certificatesv1.CertificateSigningRequestCondition{Type: c})
		}
		all = append(all, csr)
	}
	for i := range 1000 {
		add(fmt.Sprintf("a-%04d", i), "system:node:evil", time.Duration(i)*time.Second)
	}
	add("denied", "system:node:good", time.Second, certificatesv1.CertificateDenied)
	add("older", "system:node:good", time.Hour)
	add("newer", "system:node:good", time.Minute, certificatesv1.CertificateApproved)
	for i := range 100 {
		add(fmt.Sprintf("joins-%02d", i), "system:bootstrap:abcdef", time.Minute)
		all[len(all)-1].Spec.Groups = Scope{Kind: ForWorker, Reusable: true}.groups()
	}
	var names []string
	for _, csr := range inTurns(all) {
		names = append(names, csr.Name)
	}
	if want := []string{"a-0000", "newer", "joins-00", "a-0001", "joins-01", "older"}; !slices.Equal(names[:len(want)],
		want) {
		t.Errorf("the first are %q, want %q", names[:len(want)], want)
	}
	if len(names) != mostOfNode+2+100 {
		t.Errorf("%d requests: %q", len(names), names)
	}
}
