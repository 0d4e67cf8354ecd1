package catalog

import (
	"fmt"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/util/version"
)

// The form of a component's version; etcd's may name the revision of its image.
var componentForm = regexp.MustCompile(`^v?\d{1,3}\.\d{1,3}\.\d{1,3}(-\d+)?$`)

// CheckEtcd says why an etcd version cannot be used.
func CheckEtcd(text string) error {
	return checkSeries("etcd", text, func(m Minor) string { return m.Etcd })
}

// CheckFlannel says why a flannel version cannot be used.
func CheckFlannel(text string) error {
	return checkSeries("flannel", text, func(m Minor) string { return m.Flannel })
}

// checkSeries accepts the minor versions of a component that some Kubernetes
// version is used with: older ones lack what the cluster needs, and newer ones
// were not tried.
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

// release is a version without the revision of its image.
func release(text string) string {
	bare, _, _ := strings.Cut(text, "-")
	return bare
}

// series is a version without its patch.
func series(text string) *version.Version {
	v := version.MustParseGeneric(text)
	return version.MajorMinor(v.Major(), v.Minor())
}
