package catalog

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

var kubernetesForm = regexp.MustCompile(`^v?1\.(\d{1,3})(\.\d{1,3}(-[0-9A-Za-z.-]+)?)?$`)

// Kubernetes resolves a version to a release and its row of the catalog:
// "v1.36.3" and "1.36.3" name that release, "1.36" the newest patch of the
// minor version, "" and "stable" the default.
func Kubernetes(text string) (release string, m Minor, err error) {
	if text == "" || text == "stable" {
		return Newest().Patch, Newest(), nil
	}
	form := kubernetesForm.FindStringSubmatch(text)
	if form == nil {
		return "", m, wanted("must be")
	}
	number, _ := strconv.Atoi(form[1]) // three digits at most
	m, known := Find(number)
	switch {
	case !known:
		return "", m, wanted("must be")
	case form[3] != "":
		return "", m, wanted("is a pre-release, which is neither published nor built here; use")
	case form[2] == "":
		return m.Patch, m, nil
	}
	return "v" + strings.TrimPrefix(text, "v"), m, nil
}

// wanted returns an error that states the accepted forms and the supported
// range of a Kubernetes version.
func wanted(verb string) error {
	return fmt.Errorf("%s a release of Kubernetes %s, such as %s, or a minor version for its newest patch, such as %s",
		verb, Supported(), Newest().Patch, Newest())
}

// componentForm is the form of a component's version. An etcd version may
// include the revision of an image of Kubernetes.
var componentForm = regexp.MustCompile(`^v?\d{1,3}\.\d{1,3}\.\d{1,3}(-\d+)?$`)

// CheckEtcd returns an error if an etcd version cannot be used.
func CheckEtcd(text string) error {
	if err := checkSeries("etcd", text, func(m Minor) string { return m.Etcd }); err != nil {
		return err
	}
	return CheckEtcdRights(text)
}

// etcdRights lists the first patch of each minor version of etcd that enforces the
// rights of a user in all requests. Before it, every host with a credential of its
// own can read or write the whole cluster:
//
//   - by nested transactions: https://github.com/etcd-io/etcd/security/advisories/GHSA-rfx7-8w68-q57q
//   - by leases: https://github.com/etcd-io/etcd/security/advisories/GHSA-q8m4-xhhv-38mg
//   - by PrevKv in a transaction: https://github.com/etcd-io/etcd/security/advisories/GHSA-x35m-3gp4-4fh5
//   - by a watch without an end: https://github.com/etcd-io/etcd/security/advisories/GHSA-xg4h-6gfc-h4m8
var etcdRights = []string{"3.6.14", "3.7.1"}

// CheckEtcdRights returns an error if an etcd does not enforce the rights of its
// users. A cluster of an earlier release of kube-bootstrap may run such an etcd.
func CheckEtcdRights(text string) error {
	release, _, _ := strings.Cut(text, "-")
	v, err := version.ParseGeneric(release)
	if err != nil {
		return fmt.Errorf("etcd version %q: %w", text, err)
	}
	least := etcdRights[0]
	for _, first := range etcdRights {
		if series(first).EqualTo(series(release)) {
			least = first
		}
	}
	if v.LessThan(version.MustParseGeneric(least)) {
		return fmt.Errorf("must be %s or newer: %s lets every host read and change the whole cluster", least, release)
	}
	return nil
}

// CheckFlannel returns an error if a flannel version cannot be used.
func CheckFlannel(text string) error {
	return checkSeries("flannel", text, func(m Minor) string { return m.Flannel })
}

// checkSeries accepts the minor versions of a component that belong to a
// supported Kubernetes version. Older versions lack features that the cluster
// needs, and newer ones are untested.
func checkSeries(name, text string, of func(Minor) string) error {
	from, to := series(of(minors[0])), series(of(Newest()))
	if componentForm.MatchString(text) && series(text).AtLeast(from) && to.AtLeast(series(text)) {
		return nil
	}
	supported := fmt.Sprintf("%s %d.%d", name, from.Major(), from.Minor())
	if !from.EqualTo(to) {
		supported += fmt.Sprintf(" to %d.%d", to.Major(), to.Minor())
	}
	return fmt.Errorf("must be a release of %s, such as v%s", supported, of(Newest()))
}

// series returns the minor version that a version belongs to.
func series(text string) *version.Version {
	v := version.MustParseGeneric(text)
	return version.MajorMinor(v.Major(), v.Minor())
}

// olderKubelet is the number of minor versions that a kubelet may be older than
// the API server.
const olderKubelet = 3

// CheckChange returns an error if a host or cluster cannot change from one
// Kubernetes release to another. Only a newer patch of the same minor version
// is allowed.
func CheckChange(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		if err := checkForward(f, t); err != nil || t.Minor() == f.Minor() {
			return err
		}
		return fmt.Errorf("Kubernetes %s is a newer minor version than %s, which only `kube-bootstrap upgrade` "+
			"installs", to, from)
	})
}

// CheckUpgrade returns an error if `upgrade` cannot change from one Kubernetes release to another: the
// target must be of the next minor version.
func CheckUpgrade(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		if err := checkForward(f, t); err != nil || t.Minor() > f.Minor() {
			return err
		}
		return fmt.Errorf("Kubernetes %s is of the same minor version as %s", to, from)
	})
}

// checkForward returns an error if a change goes back, or skips a minor version.
func checkForward(from, to *version.Version) error {
	switch {
	case to.LessThan(from):
		return fmt.Errorf("Kubernetes cannot go back from v%s to v%s", from, to)
	case to.Minor() > from.Minor()+1:
		return fmt.Errorf("Kubernetes cannot go from v%s to v%s: no minor version may be skipped", from, to)
	}
	return nil
}

// CheckKubelet returns an error if a kubelet of one release cannot join an API
// server of another.
func CheckKubelet(kubelet, server string) error {
	return compare(kubelet, server, func(k, s *version.Version) error {
		switch {
		case k.Minor() > s.Minor():
			return fmt.Errorf("a kubelet %s cannot join the Kubernetes %s of the control plane: it must not be newer",
				kubelet, server)
		case k.Minor()+olderKubelet < s.Minor():
			return fmt.Errorf("a kubelet %s cannot join the Kubernetes %s of the control plane: it is more than %d "+
				"minor versions older", kubelet, server, olderKubelet)
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
			return fmt.Errorf("a control plane of Kubernetes %s cannot join one of %s: they must have the same minor "+
				"version", own, server)
		}
		return nil
	})
}

// CheckEtcdChange returns an error if an etcd release cannot use the data of
// another one: etcd refuses to start on data of a newer minor version.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/version/downgrade.go#L46-L53
func CheckEtcdChange(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		if t.Major() < f.Major() || t.Major() == f.Major() && t.Minor() < f.Minor() {
			return fmt.Errorf("etcd cannot go back from %s to %s", from, to)
		}
		return nil
	})
}

// etcdBefore lists the oldest release that each minor version of etcd accepts as its predecessor.
// https://etcd.io/docs/v3.7/upgrades/upgrade_3_7/
var etcdBefore = map[string]string{"3.7": "3.6.11"}

// CheckEtcdUpgrade returns an error if a member of etcd must run a newer patch before it can change to
// another release.
func CheckEtcdUpgrade(from, to string) error {
	return compare(from, to, func(f, t *version.Version) error {
		least, limited := etcdBefore[fmt.Sprintf("%d.%d", t.Major(), t.Minor())]
		if !limited || f.AtLeast(version.MustParseGeneric(least)) {
			return nil
		}
		return fmt.Errorf("etcd %s cannot follow %s: it needs %s or newer before it", to, from, least)
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
