package catalog

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// componentForm is the form of a component's version. An etcd version may
// include the revision of its image.
var componentForm = regexp.MustCompile(`^v?\d{1,3}\.\d{1,3}\.\d{1,3}(-\d+)?$`)

// CheckEtcd returns an error if an etcd version cannot be used.
func CheckEtcd(text string) error {
	return checkSeries("etcd", text, func(m Minor) string { return m.Etcd })
}

// CheckFlannel returns an error if a flannel version cannot be used.
func CheckFlannel(text string) error {
	return checkSeries("flannel", text, func(m Minor) string { return m.Flannel })
}

// checkSeries accepts the minor versions of a component that belong to a
// supported Kubernetes version. Older versions lack features that the cluster
// needs, and newer ones are untested.
func checkSeries(name, text string, of func(Minor) string) error {
	oldest, newest := minors[0], Newest()
	if componentForm.MatchString(text) {
		from, to := series(of(oldest)), series(of(newest))
		if series(text).AtLeast(from) && to.AtLeast(series(text)) {
			return nil
		}
	}
	return fmt.Errorf("must be a release of %s, such as v%s", supportedSeries(name, of(oldest), of(newest)), release(of(newest)))
}

func supportedSeries(name, oldest, newest string) string {
	from, to := series(oldest), series(newest)
	if from.EqualTo(to) {
		return fmt.Sprintf("%s %d.%d", name, to.Major(), to.Minor())
	}
	return fmt.Sprintf("%s %d.%d to %d.%d", name, from.Major(), from.Minor(), to.Major(), to.Minor())
}

// release returns a version without the revision of its image.
func release(text string) string {
	bare, _, _ := strings.Cut(text, "-")
	return bare
}

// series returns the minor version that a version belongs to.
func series(text string) *version.Version {
	v := version.MustParseGeneric(text)
	return version.MajorMinor(v.Major(), v.Minor())
}
