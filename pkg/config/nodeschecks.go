package config

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
)

func atLeast(least int) func(string) string {
	return func(s string) string {
		if n, err := strconv.Atoi(s); err != nil || n < least {
			return fmt.Sprintf("must be a whole number, %d or more", least)
		}
		return ""
	}
}

// A kubelet may set labels of its own node in these domains that Kubernetes
// reserves, and these labels. The kubelet and the API server reject all others.
var (
	allowedPrefixes = []string{"node.kubernetes.io", "kubelet.kubernetes.io"}
	allowedLabels   = []string{"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}
)

func nodeLabels(s string) string {
	for _, word := range strings.Split(s, ",") {
		key, value, ok := strings.Cut(word, "=")
		if !ok || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("%q must be KEY=VALUE, such as disk=ssd", word)
		}
		if reserved(key) {
			return fmt.Sprintf("%s is in a domain that Kubernetes keeps for itself; use one of your own, or %s/...", key, allowedPrefixes[0])
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

var taintEffects = []string{"NoSchedule", "PreferNoSchedule", "NoExecute"}

func nodeTaints(s string) string {
	for _, word := range strings.Split(s, ",") {
		taint, effect, ok := strings.Cut(word, ":")
		key, value, _ := strings.Cut(taint, "=")
		if !ok || !slices.Contains(taintEffects, effect) || len(validation.IsQualifiedName(key)) > 0 || len(validation.IsValidLabelValue(value)) > 0 {
			return fmt.Sprintf("%q must be KEY=VALUE:EFFECT, such as dedicated=db:NoSchedule; the effects are %s", word, strings.Join(taintEffects, ", "))
		}
	}
	return ""
}

func cpus(s string) string {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.MilliValue() < 100 {
		return "must be a number of processors of at least 0.1, such as 2 or 1.5"
	}
	return ""
}

func amount(s string) string {
	q, err := resource.ParseQuantity(s)
	if err != nil || q.Value() < 1<<20 {
		return "must be an amount, such as 2Gi or 500Mi"
	}
	return ""
}
