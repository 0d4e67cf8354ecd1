package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Label is a label of a node. Its text is KEY=VALUE.
type Label struct{ Key, Value string }

func (l Label) String() string { return l.Key + "=" + l.Value }

// MarshalText returns the text of a label, which records of nodes hold.
func (l Label) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads KEY=VALUE.
func (l *Label) UnmarshalText(text []byte) (err error) {
	*l, err = parseLabel(string(text))
	return err
}

func parseLabel(s string) (Label, error) {
	key, value, ok := strings.Cut(s, "=")
	if !ok || !isPair(key, value) {
		return Label{}, errors.New("must be KEY=VALUE, such as disk=ssd")
	}
	return Label{key, value}, nil
}

// isPair reports whether Kubernetes accepts a key and a value of a label or a taint.
func isPair(key, value string) bool {
	return len(validation.IsQualifiedName(key)) == 0 && len(validation.IsValidLabelValue(value)) == 0
}

// A kubelet may set labels of its own node in these domains that Kubernetes reserves, and these labels. The
// kubelet and the API server reject all others.
// https://github.com/kubernetes/kubernetes/blob/v1.37.2/plugin/pkg/admission/noderestriction/admission.go#L650-L664
var (
	allowedPrefixes = []string{"node.kubernetes.io", "kubelet.kubernetes.io"}
	allowedLabels   = []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)

// nodeLabels is the check of the labels that a user gives to a node.
func nodeLabels(labels []Label) string {
	for _, l := range labels {
		if reserved(l.Key) {
			return fmt.Sprintf("%s is in a domain that Kubernetes keeps for itself; use one of your own, or %s/...",
				l.Key, allowedPrefixes[0])
		}
	}
	return ""
}

func reserved(key string) bool {
	domain, _, prefixed := strings.Cut(key, "/")
	if !prefixed || slices.Contains(allowedPrefixes, domain) || slices.Contains(allowedLabels, key) {
		return false
	}
	within := func(of string) bool { return domain == of || strings.HasSuffix(domain, "."+of) }
	return within("kubernetes.io") || within("k8s.io")
}

// Taint is a taint of a node. Its text is KEY=VALUE:EFFECT, or KEY:EFFECT without a value.
type Taint struct{ corev1.Taint }

func (t Taint) String() string { return t.ToString() }

// MarshalText returns the text of a taint, which records of nodes hold.
func (t Taint) MarshalText() ([]byte, error) { return []byte(t.String()), nil }

// UnmarshalText reads KEY=VALUE:EFFECT.
func (t *Taint) UnmarshalText(text []byte) (err error) {
	*t, err = parseTaint(string(text))
	return err
}

var taintEffects = []string{
	string(corev1.TaintEffectNoSchedule), string(corev1.TaintEffectPreferNoSchedule),
	string(corev1.TaintEffectNoExecute),
}

func parseTaint(s string) (Taint, error) {
	taint, effect, ok := strings.Cut(s, ":")
	key, value, _ := strings.Cut(taint, "=")
	if !ok || !slices.Contains(taintEffects, effect) || !isPair(key, value) {
		return Taint{}, fmt.Errorf("must be KEY=VALUE:EFFECT, such as dedicated=db:NoSchedule; the effects are %s",
			strings.Join(taintEffects, ", "))
	}
	return Taint{corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}}, nil
}
