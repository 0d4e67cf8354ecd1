package image

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/cache"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/rootfs"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Changed compiles components of the checkout without linking them. It
// returns the version of each: one with a hash of the compiled code, or "" if
// the code is the one of the release.
//
// It uses the build IDs of the packages: a component has changed if one of
// its packages has another build ID. Only changed components need to be
// linked.
func (b *Builder) Changed(ctx context.Context, v Versions, arch string, programs []string) (map[string]string, error) {
	now, err := b.contentKeys(ctx, v, arch, programs)
	if err != nil {
		return nil, err
	}
	then, err := b.releasedKeys(ctx, v, arch, programs)
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for program, key := range now {
		if versions[program] = ""; key != then[program] {
			versions[program] = v.Kubernetes + "+" + key
		}
	}
	return versions, nil
}

// releasedKeys returns the contentKeys of the release. They are cached.
func (b *Builder) releasedKeys(
	ctx context.Context, v Versions, arch string, programs []string,
) (map[string]string, error) {
	released, keys := &Builder{Cache: b.Cache, goVersion: b.goVersion}, map[string]string{}
	dir := func(program string) string {
		return fmt.Sprintf("content-%s-%s-%s-%s", program, v.Kubernetes, arch, cache.Key(b.goVersion))
	}
	const file = "key"
	missing := slices.DeleteFunc(slices.Clone(programs), func(program string) bool {
		data, err := os.ReadFile(filepath.Join(b.Cache, "parts", dir(program), file))
		keys[program] = string(data)
		return err == nil
	})
	if len(missing) == 0 {
		return keys, nil
	}
	found, err := released.contentKeys(ctx, v, arch, missing)
	if err != nil {
		return nil, fmt.Errorf("compile release %s to compare with: %w", v.Kubernetes, err)
	}
	for program, key := range found {
		_, err := cache.Get(ctx, b.Cache, dir(program),
			func(dir string) error { return os.WriteFile(filepath.Join(dir, file), []byte(key), 0o644) })
		if err != nil {
			return nil, err
		}
	}
	maps.Copy(keys, found)
	return keys, nil
}

// listed is the output of `go list -export` for a package.
type listed struct {
	BuildID string
	Deps    []string // of a main package
}

// listFormat is the form of a line of that output. JSON output would be a hundred
// times as long.
const listFormat = "{{.ImportPath}}\t{{.BuildID}}\t{{if not .DepOnly}}{{join .Deps \" \"}}{{end}}"

func (b *Builder) contentKeys(
	ctx context.Context, v Versions, arch string, programs []string,
) (map[string]string, error) {
	c, err := b.programs(ctx, v, arch, "", programs)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := c.inModule(func(work string) error { return c.list(ctx, work, &out) }); err != nil {
		return nil, fmt.Errorf("compile %s %s for %s: %w", strings.Join(programs, ", "), v.Kubernetes, arch, err)
	}
	all := map[string]listed{}
	for line := range strings.Lines(out.String()) {
		name, rest, _ := strings.Cut(line, "\t")
		id, deps, _ := strings.Cut(rest, "\t")
		all[name] = listed{id, strings.Fields(deps)}
	}
	keys := map[string]string{}
	for _, program := range programs {
		if keys[program], err = contentKey(all, commandOf(program)); err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// contentKey returns a short hash of the compiled code of a command.
func contentKey(all map[string]listed, command string) (string, error) {
	var contents []string
	for _, name := range append(slices.Clone(all[command].Deps), command) {
		one := all[name]
		if name == "unsafe" || name == "C" { // pseudo-packages of the compiler
			continue
		}
		if one.BuildID == "" {
			return "", fmt.Errorf("go list -export reported no build ID for package %s", name)
		}
		contents = append(contents, name+" "+path.Base(one.BuildID)) // the last part identifies the compiled code
	}
	slices.Sort(contents)
	return cache.Key(contents)[:12], nil
}

func commandOf(program string) string { return "k8s.io/kubernetes/cmd/" + program }

// programs returns the build of one executable per component, stamped with version.
func (b *Builder) programs(
	ctx context.Context, v Versions, arch, version string, programs []string,
) (compilation, error) {
	r := v.Recipe("programs")
	r.LDFlags = v.stamp(version)
	for _, program := range programs {
		r.Packages = append(r.Packages, commandOf(program))
	}
	if err := b.prepare(ctx, &r); err != nil {
		return compilation{}, fmt.Errorf("prepare %s: %w", strings.Join(programs, ", "), err)
	}
	return b.compilation(ctx, r, arch)
}

// Program links a component of the checkout. Its version identifies its code.
func (b *Builder) Program(ctx context.Context, v Versions, arch, program, version string) (cache.Part, error) {
	c, err := b.programs(ctx, v, arch, version, []string{program})
	if err != nil {
		return cache.Part{}, err
	}
	part := b.programPart(v, arch, program, version)
	before := b.checkoutState()
	_, err = cache.Get(ctx, b.Cache, filepath.Base(part.Dir), func(dir string) error {
		if err := c.run(ctx, dir); err != nil {
			return err
		}
		if b.checkoutState() != before {
			return fmt.Errorf("%s was changed while it was built; run again", b.K8sDir)
		}
		return nil
	})
	if err != nil {
		return cache.Part{}, fmt.Errorf("link %s for %s: %w", program, arch, err)
	}
	return part, nil
}

func (b *Builder) programPart(v Versions, arch, program, version string) cache.Part {
	_, content, _ := strings.Cut(version, "+")
	dir := fmt.Sprintf("%s-%s-%s-%s", program, v.Kubernetes, arch, content)
	return cache.Part{
		Name: program, Version: version, Origin: commandOf(program) + " (checkout)", Key: content,
		Dir: filepath.Join(b.Cache, "parts", dir),
	}
}

// spareBuilds is the number of builds of a component that stay in the cache.
const spareBuilds = 4

// DropOldPrograms keeps only the latest builds of components in the cache.
func (b *Builder) DropOldPrograms(arch string, programs []string) error {
	var errs []error
	for _, program := range programs {
		builds, err := filepath.Glob(filepath.Join(b.Cache, "parts", program+"-v*-"+arch+"-*"))
		errs = append(errs, err)
		slices.SortFunc(builds, func(x, y string) int { return modified(y).Compare(modified(x)) })
		for _, old := range builds[min(spareBuilds, len(builds)):] {
			dir, name := filepath.Split(old)
			errs = append(errs, os.RemoveAll(old), os.RemoveAll(dir+"layer-"+name))
		}
	}
	return errors.Join(errs...)
}

func modified(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

// CachedProgram returns a component from the cache.
func (b *Builder) CachedProgram(v Versions, arch, program, version string) (cache.Part, error) {
	part := b.programPart(v, arch, program, version)
	if _, err := os.Stat(part.Dir); err != nil {
		return part, &step.Problem{Name: "program-missing",
			Text: fmt.Sprintf("%s %s, which the cluster runs, is not in the cache of this machine", program, version),
			Remedy: "build it again: add --build-" + strings.TrimPrefix(program, "kube-") +
				", or omit all --build flags"}
	}
	return part, nil
}

// ProgramImage returns the image of components, on top of hyperkube if they need it.
func (b *Builder) ProgramImage(
	ctx context.Context, img Image, arch string, hyperkube []v1.Layer, parts map[string]cache.Part,
) (Built, error) {
	built := Built{Image: img, Arch: arch}
	i := slices.IndexFunc(programImages, func(i programImage) bool { return i.name == img.Name })
	var layers []v1.Layer
	if programImages[i].whole {
		layers = slices.Clone(hyperkube)
	}
	for _, program := range programImages[i].programs {
		part, own := parts[program]
		if !own {
			continue
		}
		files := map[string]string{programDir + "/" + program: filepath.Join(part.Dir, program)}
		layer, err := rootfs.Layer(ctx, b.Cache, "layer-"+filepath.Base(part.Dir), rootfs.Content{Files: files})
		if err != nil {
			return built, err
		}
		layers, built.Parts = append(layers, layer), append(built.Parts, part)
	}
	var err error
	built.OCI, err = Assemble(layers, arch, shape{}.config(img.Name))
	return built, err
}
