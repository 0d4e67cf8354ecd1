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

// unstamped is what a containerd counts as whose builder gave it no version.
const unstamped = "2.0.0"

// MissingProblem says that there is no containerd [containerd-missing].
func (Runtime) MissingProblem() error {
	if host.HasProgram("containerd") {
		return nil
	}
	return &step.Problem{Name: "containerd-missing", Text: "there is no containerd on this host", Remedy: "install it (containerd or containerd.io)"}
}

// OldProblem says that the containerd of this host is older than a release
// [containerd-version]. None is MissingProblem's matter.
func (r Runtime) OldProblem(ctx context.Context, oldest string) error {
	if r.MissingProblem() != nil {
		return nil
	}
	installed, err := installedVersion(ctx)
	if err != nil {
		return err
	}
	return tooOld(installed, oldest)
}

func tooOld(installed, oldest string) error {
	v, err := version.ParseGeneric(installed)
	if err != nil || v.AtLeast(version.MustParseGeneric(oldest)) {
		return err
	}
	return &step.Problem{
		Name: "containerd-version",
		Text: fmt.Sprintf("the containerd of this host is %s, and this Kubernetes needs %s or newer", installed, oldest), Remedy: "update containerd",
	}
}

// installedVersion asks the program, as containerd may not run yet.
func installedVersion(ctx context.Context) (string, error) {
	text, err := host.Run(ctx, "containerd", "--version")
	return parseVersion(text), err
}

func parseVersion(text string) string {
	if m := versionPattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return unstamped
}

// majorVersion decides which form the config file has.
func majorVersion(ctx context.Context) (int, error) {
	if err := (Runtime{}).MissingProblem(); err != nil {
		return 0, err
	}
	installed, err := installedVersion(ctx)
	if err != nil {
		return 0, err
	}
	v, err := version.ParseGeneric(installed)
	if err != nil {
		return 0, fmt.Errorf("containerd --version: %w", err)
	}
	return int(v.Major()), nil
}
