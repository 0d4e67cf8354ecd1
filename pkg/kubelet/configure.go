package kubelet

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ConfigureID identifies Kubelet.Configure.
const ConfigureID step.ID = "configure-kubelet"

// Configure is the step that writes the files that the kubelet reads. Undo removes all
// files, mounts and rules of the kubelet and of kube-proxy, after the pods are removed.
func (k Kubelet) Configure() step.Step {
	files := k.Files.Step(ConfigureID, "configure the kubelet", k.files)
	return step.Step{
		ID: files.ID, Name: files.Name,
		Check: func(ctx context.Context) (step.Diff, error) {
			diff, err := files.Check(ctx)
			record, recordErr := foundRecord.Diff(k.Files)
			identity, identityErr := k.Identity.diff()
			return append(append(diff, record...), identity...), errors.Join(err, recordErr, identityErr)
		},
		Apply: func(ctx context.Context) error {
			if err := rememberFound(ctx, k.Files); err != nil {
				return err
			}
			if err := files.Apply(ctx); err != nil {
				return err
			}
			return k.Identity.write(ctx, k.service().Remove)
		},
		Undo: func(ctx context.Context) error { return restoreFound(ctx, k.Files) },
	}
}

func (k Kubelet) files() ([]host.File, error) {
	path, own := resolv(k.Files)
	config, err := k.Config.encode(path, k.ControlPlane)
	if err != nil {
		return nil, err
	}
	tree := []host.File{{Path: configFile, Data: config}}
	if path == resolvFile {
		tree = append(tree, host.File{Path: resolvFile, Data: own, Mode: 0o644})
	}
	return tree, nil
}

const (
	hostEtc      = "/host/etc" // the host's /etc as the kubelet sees it
	hostResolv   = "/etc/resolv.conf"
	systemResolv = "/run/systemd/resolve/resolv.conf"
)

// resolv chooses the resolv.conf of pods. They cannot reach a resolver on a
// loopback address of the host. path is as the kubelet sees it; own is the content
// of a file that kube-bootstrap must write there, nil for a file of the host.
func resolv(files host.Files) (path string, own []byte) {
	data, err := files.Read(hostResolv)
	if err != nil {
		return resolvFile, nil
	}
	kept, dropped := withoutLoopback(string(data))
	info, err := os.Lstat(files.Path(hostResolv))
	plain := err == nil && info.Mode().IsRegular() // a link leads elsewhere inside of a container
	switch {
	case dropped && files.Exists(systemResolv):
		return systemResolv, nil // kept up to date by systemd-resolved
	case !dropped && plain:
		return hostEtc + "/resolv.conf", nil
	}
	return resolvFile, []byte(kept)
}

// HasResolver reports whether this host has a name server that pods reach, see resolv.
func HasResolver(files host.Files) bool {
	path, text := resolv(files)
	if path != resolvFile {
		text, _ = files.Read(strings.TrimPrefix(path, "/host")) // a missing file names no server
	}
	lines := strings.Split(string(text), "\n")
	return slices.ContainsFunc(lines, func(line string) bool { return nameServer(line) != "" })
}

// nameServer returns the address in a line of resolv.conf; "" if it has none.
func nameServer(line string) string {
	if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
		return words[1]
	}
	return ""
}

func withoutLoopback(conf string) (kept string, dropped bool) {
	var b strings.Builder
	for line := range strings.Lines(conf) {
		if addr, err := netip.ParseAddr(nameServer(line)); err == nil && addr.IsLoopback() {
			dropped = true
			continue
		}
		if text := strings.TrimSpace(line); text != "" && !strings.HasPrefix(text, "#") {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String(), dropped
}

// credentialsPath is the kubelet's file of credentials, in the form of Docker's.
const credentialsPath = "/var/lib/kubelet/config.json"

// RegistryFiles returns the kubelet's credentials for a private registry, which it gives
// to containerd with each pull. They are also for the names that the registry replaces
// if it has a token server, which containerd asks with these credentials only. Otherwise
// containerd would send them to the upstream if its hosts.toml is missing.
func RegistryFiles(to *registry.Registry, upstreams []string) ([]host.File, error) {
	if to.Auth.Username == "" {
		return nil, nil
	}
	auths := map[string]authn.AuthConfig{to.Host(): to.Auth}
	if !to.BasicAuth {
		for _, name := range upstreams {
			auths[name] = to.Auth
		}
	}
	data, err := json.Marshal(map[string]any{"auths": auths})
	return []host.File{{Path: credentialsPath, Data: data}}, err
}
