package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

// version is set by the linker. A program built by "go install" takes its
// version from the module information.
var version = ""

func programVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

type versionInfo struct {
	Version    string `json:"version"`
	Commit     string `json:"commit,omitempty"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
	Kubernetes string `json:"kubernetes"` // the default
}

func versionCommand(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this program and of the Kubernetes it sets up",
		Example: "  kube-bootstrap version -o json",
	}
	format := output.AddFlag(c)
	c.RunE = func(*cobra.Command, []string) error {
		v := thisVersion()
		return format.Print(out, "Version", v, func(w io.Writer) { fmt.Fprintln(w, v) })
	}
	return c
}

func thisVersion() versionInfo {
	return versionInfo{
		Version: programVersion(), Commit: commit(), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Kubernetes: config.Default().KubernetesVersion,
	}
}

func (v versionInfo) String() string {
	return fmt.Sprintf("kube-bootstrap %s (%s, %s), Kubernetes %s by default", v.Version, v.Go, v.Platform, v.Kubernetes)
}

func commit() string {
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return s.Value
			}
		}
	}
	return ""
}
