package maindocker

import (
	"context"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// validateNext returns a problem if Docker would not start with data as its
// daemon.json; nil stands for the current file.
func validateNext(ctx context.Context, files host.Files, data []byte) error {
	if data != nil {
		return validate(ctx, data)
	}
	now, err := readSettings(files)
	if err != nil {
		return err
	}
	if data, err = encode(now); err != nil {
		return err
	}
	return validate(ctx, data)
}

// validate makes dockerd check the settings before anything is stopped.
func validate(ctx context.Context, data []byte) error {
	err := host.WithTempFile("daemon-*.json", data, func(path string) error {
		_, err := host.Run(ctx, "dockerd", "--validate", "--config-file", path)
		return err
	})
	switch {
	case err == nil, !host.HasProgram("dockerd"):
		return nil
	case strings.Contains(err.Error(), "unknown flag: --validate"):
		return nil // Docker before 23.0
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &step.Problem{Name: "daemon-json", Text: daemonJSON + ": Docker would not start with it: " + err.Error(), Remedy: "correct it"}
}

// allowsDirectRouting reports whether this Docker (28.2 and later) has the
// setting that lets packets reach unpublished ports of containers; an older
// one would not start with it. It asks dockerd instead of comparing versions,
// because builds of distributions number them differently.
func allowsDirectRouting(ctx context.Context) bool {
	return host.HasProgram("dockerd") && knows(ctx, `{"allow-direct-routing": true}`)
}

func knows(ctx context.Context, text string) bool {
	args := []string{"dockerd", "--validate", "--config-file", "/dev/stdin"}
	_, err := host.Command{Args: args, Stdin: strings.NewReader(text)}.Run(ctx)
	return err == nil
}
