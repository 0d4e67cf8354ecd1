package catalog

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/version"
)

// olderKubelet is the number of minor versions that a kubelet may be older than
// the API server.
const olderKubelet = 3

// CheckChange returns an error if a host or cluster cannot change from one
// Kubernetes release to another. Only a newer patch of the same minor version
// is allowed.
func CheckChange(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		switch {
		case t.LessThan(f):
			return fmt.Errorf("Kubernetes cannot go back from %s to %s", from, to)
		case t.Minor() > f.Minor()+1:
			return fmt.Errorf("Kubernetes cannot go from %s to %s: no minor version may be skipped", from, to)
		case t.Minor() > f.Minor():
			return fmt.Errorf("Kubernetes %s is a newer minor version than %s, and kube-bootstrap cannot upgrade from one to the next yet", to, from)
		}
		return nil
	})
}

// CheckKubelet returns an error if a kubelet of one release cannot join an API
// server of another.
func CheckKubelet(kubelet, server string) error {
	return compare(kubelet, server, func(k, s *version.Version) error {
		switch {
		case k.Minor() > s.Minor():
			return fmt.Errorf("a kubelet %s cannot join the Kubernetes %s of the control plane: it must not be newer", kubelet, server)
		case k.Minor()+olderKubelet < s.Minor():
			return fmt.Errorf("a kubelet %s cannot join the Kubernetes %s of the control plane: it is more than %d minor versions older", kubelet, server, olderKubelet)
		}
		return nil
	})
}

// CheckControlPlane returns an error if control planes of the two releases
// cannot run in one cluster, where they share etcd and the leases of the
// controllers.
func CheckControlPlane(own, server string) error {
	return compare(own, server, func(o, s *version.Version) error {
		if o.Minor() != s.Minor() {
			return fmt.Errorf("a control plane of Kubernetes %s cannot join one of %s: they must have the same minor version", own, server)
		}
		return nil
	})
}

// CheckEtcdChange returns an error if an etcd release cannot use the data of
// another one: etcd refuses to start on data of a newer minor version.
func CheckEtcdChange(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		if t.Major() < f.Major() || t.Major() == f.Major() && t.Minor() < f.Minor() {
			return fmt.Errorf("etcd cannot go back from %s to %s", from, to)
		}
		return nil
	})
}

func compare(a, b string, with func(a, b *version.Version) error) error {
	first, err := version.ParseSemantic(a)
	if err != nil {
		return fmt.Errorf("version %q: %w", a, err)
	}
	second, err := version.ParseSemantic(b)
	if err != nil {
		return fmt.Errorf("version %q: %w", b, err)
	}
	return with(first, second)
}
