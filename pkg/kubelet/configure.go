package kubelet

import (
	"context"
	"encoding/json"
	"net/netip"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Configure is the step that writes the files that the kubelet reads. Undo removes
// all files, mounts and rules of the kubelet and of kube-proxy. It must run after the
// removal of the pods, which use them.
func (k Kubelet) Configure() step.Step {
	return step.Step{
		Name: "configure the kubelet",
		Check: func(context.Context) (step.Diff, error) {
			tree, err := k.files()
			if err != nil {
				return nil, err
			}
			diff, err := k.Files.Missing(tree)
			if err != nil {
				return nil, err
			}
			record, err := foundRecord.Diff(k.Files)
			if err != nil {
				return nil, err
			}
			diff = append(diff, record...)
			identity, err := k.Identity.diff()
			return append(diff, identity...), err
		},
		Apply: func(ctx context.Context) error {
			if err := rememberFound(ctx, k.Files); err != nil {
				return err
			}
			tree, err := k.files()
			if err != nil {
				return err
			}
			if err := k.Files.Put(tree); err != nil {
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
	switch {
	case dropped && files.Exists(systemResolv):
		return systemResolv, nil // kept up to date by systemd-resolved
	case !dropped && plainFile(files, hostResolv):
		return hostEtc + "/resolv.conf", nil
	}
	return resolvFile, []byte(kept)
}

// HasResolver reports whether pods of this host can resolve the outside world:
// whether any name server is left once those on a loopback address are not
// counted.
func HasResolver(files host.Files) bool {
	path, text := resolv(files)
	if path != resolvFile {
		text, _ = files.Read(strings.TrimPrefix(path, "/host")) // a missing file names no server
	}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 1 && words[0] == "nameserver" {
			return true
		}
	}
	return false
}

// plainFile is false for a link, which leads elsewhere inside of a container.
func plainFile(files host.Files, path string) bool {
	info, err := os.Lstat(files.Path(path))
	return err == nil && info.Mode().IsRegular()
}

func withoutLoopback(conf string) (kept string, dropped bool) {
	var b strings.Builder
	for line := range strings.Lines(conf) {
		words := strings.Fields(line)
		if len(words) > 1 && words[0] == "nameserver" {
			if addr, err := netip.ParseAddr(words[1]); err == nil && addr.IsLoopback() {
				dropped = true
				continue
			}
		}
		if len(words) > 0 && !strings.HasPrefix(words[0], "#") {
			b.WriteString(strings.TrimSuffix(line, "\n") + "\n")
		}
	}
	return b.String(), dropped
}

// credentialsPath is where the kubelet looks for credentials of its own, in
// the form of Docker's configuration.
const credentialsPath = "/var/lib/kubelet/config.json"

// RegistryFiles returns the kubelet's credentials for a private registry, which
// it gives to containerd with each pull. A registry with a token server needs
// them also for the upstream names that it replaces, because containerd asks a
// token server with these credentials only. Other registries must not have them
// there: without its hosts.toml, containerd would send them to the upstream.
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
