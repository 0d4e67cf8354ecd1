package containerd

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestParseVersion(t *testing.T) {
	for text, want := range map[string]string{
		"containerd github.com/containerd/containerd 1.7.24~ds1 1.7.24~ds1-6":                   "1.7.24",
		"containerd github.com/containerd/containerd/v2 2.1.9~ds1 2.1.9":                        "2.1.9",
		"containerd containerd.io v2.2.1 dea7da592f5d1d2b7755e3a161be07f43fad8f75":              "2.2.1",
		"containerd github.com/containerd/containerd/v2 2.4.2+unknown ":                         "2.4.2",
		"containerd github.com/containerd/containerd/v2 (devel)":                                unstamped,
		"containerd github.com/containerd/containerd v1.6.33 d2d58213f83a351ca8f528a95fbd145f5": "1.6.33",
	} {
		if got := parseVersion(text); got != want {
			t.Errorf("%s: got %s", text, got)
		}
	}
}

func TestOldContainerdIsAProblem(t *testing.T) {
	for installed, old := range map[string]bool{
		"1.6.33": true, "1.7.0": false, "1.7.24": false, "2.1.9": false, unstamped: false,
	} {
		problems := step.Problems(tooOld(version.MustParseGeneric(installed), "1.7.0"))
		if old != (len(problems) == 1 && problems[0].Name == "containerd-version" &&
			strings.Contains(problems[0].Text, "needs 1.7.0")) {
			t.Errorf("%s: %v", installed, problems)
		}
	}
}
