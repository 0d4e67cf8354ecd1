package containerd

import (
	"context"
	"fmt"
	"regexp"

	"k8s.io/apimachinery/pkg/util/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

var versionPattern = regexp.MustCompile(` v?(\d+\.\d+(\.\d+)?)`)

// unstamped is the assumed version of a containerd that was built without one.
const unstamped = "2.0.0"

// MissingProblem returns the problem that containerd is not installed [containerd-missing].
func MissingProblem() error {
	if host.HasProgram("containerd") {
		return nil
	}
	return &step.Problem{Name: "containerd-missing", Text: "containerd is not installed on this host", Remedy: "install it (containerd or containerd.io)"}
}

// OldProblem returns the problem that the host's containerd is older than a release
// [containerd-version]. It ignores that containerd is missing.
func OldProblem(ctx context.Context, oldest string) error {
	if MissingProblem() != nil {
		return nil
	}
	installed, err := installedVersion(ctx)
	if err != nil {
		return err
	}
	return tooOld(installed, oldest)
}

func tooOld(installed *version.Version, oldest string) error {
	if installed.AtLeast(version.MustParseGeneric(oldest)) {
		return nil
	}
	return &step.Problem{
		Name: "containerd-version",
		Text: fmt.Sprintf("the containerd of this host is %s, and this Kubernetes needs %s or newer", installed, oldest), Remedy: "update containerd",
	}
}

// installedVersion runs `containerd --version`, because the daemon may not run
// yet. The major version determines the format of the configuration file.
func installedVersion(ctx context.Context) (*version.Version, error) {
	if err := MissingProblem(); err != nil {
		return nil, err
	}
	text, err := host.Run(ctx, "containerd", "--version")
	if err != nil {
		return nil, err
	}
	v, err := version.ParseGeneric(parseVersion(text))
	if err != nil {
		return nil, fmt.Errorf("containerd --version: %w", err)
	}
	return v, nil
}

func parseVersion(text string) string {
	if m := versionPattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return unstamped
}
