package machines

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/mount"
	"github.com/moby/moby/client"
)

// EngineHost describes the host of the engine, as far as machines on it depend on it.
type EngineHost struct {
	Caps      []string // the bounding set
	Modules   bool     // whether it has /lib/modules
	FreeBytes int64    // free space on the file system of the engine's data
}

// engineHostScript inspects the host of the engine from a container on it, because an
// engine with a local socket may run in a virtual machine or on another host too.
const engineHostScript = `cat /proc/1/status
[ ! -d /machine/lib/modules ] || echo "Modules: 1"
echo "Free: $(df -B1 --output=avail "/machine$1" | tail -n 1)"`

// EngineHost inspects the host of the engine with a container of an image with a shell.
func (c Objects) EngineHost(ctx context.Context, image string) (EngineHost, error) {
	found, err := c.Engine.Facts(ctx)
	if err != nil {
		return EngineHost{}, err
	}
	text, err := c.helpers.output(ctx, client.ContainerCreateOptions{
		Config: &container.Config{
			Image: image, Entrypoint: []string{"/bin/sh", "-c", engineHostScript, "sh", found.DockerRootDir},
		},
		HostConfig: &container.HostConfig{PidMode: "host", NetworkMode: "none",
			Mounts: []mount.Mount{{Type: mount.TypeBind, Source: "/", Target: "/machine", ReadOnly: true}}},
	})
	if err != nil {
		return EngineHost{}, fmt.Errorf("inspect the host of the engine: %w", err)
	}
	return parseEngineHost(text)
}

func parseEngineHost(text string) (h EngineHost, err error) {
	for line := range strings.Lines(text) {
		key, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); key {
		case "CapBnd":
			h.Caps, err = parseBoundingSet(value)
		case "Modules":
			h.Modules = true
		case "Free":
			h.FreeBytes, err = strconv.ParseInt(value, 10, 64)
		}
		if err != nil {
			return h, fmt.Errorf("the host of the engine reports %q: %w", line, err)
		}
	}
	if len(h.Caps) == 0 {
		return h, errors.New("the host of the engine reports no capabilities")
	}
	return h, nil
}

func parseBoundingSet(word string) (caps []string, err error) {
	mask, err := strconv.ParseUint(word, 16, 64)
	for bit, name := range capabilities {
		if mask>>bit&1 == 1 {
			caps = append(caps, name)
		}
	}
	return caps, err
}
