// Package registries runs registries and download sites for tests: private ones, and copies of the official ones.
package registries

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha512"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	registry "github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/test/hosts"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// Official stands in for the upstream sites: what is in the bundle that was
// built from source, under the official names and in the official shapes.
type Official struct {
	Registry string // address of a registry that speaks plain HTTP
	Files    string // directory of the download sites
	Versions image.Versions
	built    map[string]v1.Image
}

// NewOfficial fills a registry and the download sites.
func NewOfficial(t *testing.T) *Official {
	t.Helper()
	versions, err := image.For("", image.Versions{})
	must.NoError(t, err)
	o := &Official{Registry: StartRegistry(t), Files: t.TempDir(), Versions: versions}
	o.unpackBuilt(t)
	for _, part := range []string{
		"etcd", "flannel", "pause", "metrics-server", "local-path-provisioner", "metallb-controller", "metallb-speaker",
	} {
		o.push(t, image.Ref(o.Versions, part), o.built[part], packed(t, flattened(t, o.built[part], all)))
	}
	o.push(t, image.Ref(o.Versions, "coredns"), asNobody(t, o.built["coredns"]),
		packed(t, flattened(t, o.built["coredns"], bindsLowPorts)))
	hyperkube := o.built["hyperkube"]
	none := empty.Image
	o.push(t, "registry.k8s.io/build-image/debian-base:bookworm-v1.0.6", none,
		packed(t, flattened(t, hyperkube, ofBase)))
	forProxy := packed(t, flattened(t, hyperkube, ofProxy))
	for _, program := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kube-proxy"} {
		o.push(t, "registry.k8s.io/"+program+":"+o.Versions.Kubernetes, none, forProxy, packed(t, launcher(t, program)))
	}
	programs := "release/" + o.Versions.Kubernetes + "/bin/linux/amd64/"
	o.file(t, programs+"kubelet", []byte(script("kubelet")))
	o.file(t, programs+"kubectl", static(t, hyperkube))
	o.file(t, "v"+o.Versions.CNI+"/cni-plugins-linux-amd64-v"+o.Versions.CNI+".tgz",
		packed(t, flattened(t, hyperkube, plugins)))
	return o
}

// unpackBuilt opens the images of the bundle.
func (o *Official) unpackBuilt(t *testing.T) {
	dir := t.TempDir()
	file, err := os.Open(hosts.Built.Bundle)
	must.NoError(t, err)
	defer file.Close()
	plain, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(1<<30))
	must.NoError(t, err)
	defer plain.Close()
	archive := tar.NewReader(plain)
	for h, err := archive.Next(); err != io.EOF; h, err = archive.Next() {
		must.NoError(t, err)
		to := filepath.Join(dir, path.Clean("/"+h.Name))
		must.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
		out, err := os.Create(to)
		must.NoError(t, err)
		_, err = io.Copy(out, archive)
		must.NoError(t, errors.Join(err, out.Close()))
	}
	index, err := layout.ImageIndexFromPath(dir)
	must.NoError(t, err)
	list, err := index.IndexManifest()
	must.NoError(t, err)
	o.built = map[string]v1.Image{}
	for _, img := range image.Catalogue(o.Versions, "") {
		for _, m := range list.Manifests {
			if m.Annotations["io.containerd.image.name"] != img.Ref {
				continue
			}
			inner, err := index.ImageIndex(m.Digest)
			must.NoError(t, err)
			platforms, err := inner.IndexManifest()
			must.NoError(t, err)
			o.built[img.Name], err = inner.Image(platforms.Manifests[0].Digest)
			must.NoError(t, err)
		}
	}
}

// push puts an image for amd64 into the registry, behind an index as upstream's
// are: the config of like, and those layers.
func (o *Official) push(t *testing.T, ref string, like v1.Image, layers ...[]byte) {
	t.Helper()
	config, err := like.ConfigFile()
	must.NoError(t, err)
	config = config.DeepCopy()
	config.OS, config.Architecture, config.RootFS.DiffIDs, config.History = "linux", "amd64", nil, nil
	img, err := mutate.ConfigFile(empty.Image, config)
	must.NoError(t, err)
	for _, data := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser,
			error) {
			return io.NopCloser(bytes.NewReader(data)), nil
		})
		must.NoError(t, err)
		img, err = mutate.AppendLayers(img, layer)
		must.NoError(t, err)
	}
	index := mutate.AppendManifests(empty.Index, mutate.IndexAddendum{
		Add: img, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: "amd64"}},
	})
	_, below, _ := strings.Cut(ref, "/")
	at, err := name.ParseReference(o.Registry+"/official/"+below, name.Insecure)
	must.NoError(t, err)
	must.NoError(t, registry.WriteIndex(at, index, registry.WithAuth(&authn.Basic{Username: User, Password: Password})))
}

// file puts a file beside its checksum.
func (o *Official) file(t *testing.T, name string, data []byte) {
	t.Helper()
	to := filepath.Join(o.Files, name)
	must.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	sum := sha512.Sum512(data)
	must.NoError(t, os.WriteFile(to+".sha512", []byte(hex.EncodeToString(sum[:])), 0o644))
	must.NoError(t, os.WriteFile(to, data, 0o644))
}

// change says what becomes of a file of an image; an empty name leaves it out.
type change func(h *tar.Header)

func all(*tar.Header) {}

// asNobody and bindsLowPorts are what upstream does to CoreDNS.
func asNobody(t *testing.T, img v1.Image) v1.Image {
	config, err := img.ConfigFile()
	must.NoError(t, err)
	config = config.DeepCopy()
	config.Config.User = "65532:65532"
	img, err = mutate.ConfigFile(empty.Image, config)
	must.NoError(t, err)
	return img
}

func bindsLowPorts(h *tar.Header) {
	if h.Typeflag == tar.TypeReg {
		const netBindService = "\x01\x00\x00\x02\x00\x04\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
		h.PAXRecords = map[string]string{"SCHILY.xattr.security.capability": netBindService}
	}
}

// The images of upstream divide the userland: kube-proxy's has iptables, in
// directories that are not merged with /usr.
func ofProxy(h *tar.Header) {
	if !isProxys(h.Name) {
		h.Name = ""
		return
	}
	for _, dir := range []string{"sbin/", "lib/"} {
		if h.Typeflag == tar.TypeReg && strings.HasPrefix(h.Name, "usr/"+dir) {
			h.Name = strings.TrimPrefix(h.Name, "usr/") // as if never merged
		}
	}
	if h.Name == "usr/local/bin/hyperkube" {
		h.Name = programsHome + "hyperkube"
	}
}

func ofBase(h *tar.Header) {
	if isProxys(h.Name) || strings.HasPrefix(h.Name, "opt/cni") || strings.HasPrefix(h.Name, "usr/local/bin/") {
		h.Name = ""
	}
}

func isProxys(name string) bool {
	if strings.HasPrefix(name, "usr/local/bin/") {
		return name == "usr/local/bin/hyperkube"
	}
	for _, part := range []string{"xtables", "iptables", "ip6tables", "/nft", "libnft", "ipset", "kmod", "modprobe"} {
		if strings.Contains(name, part) {
			return true
		}
	}
	return false
}

// plugins are packed as the release of the CNI plugins is.
func plugins(h *tar.Header) {
	if h.Typeflag == tar.TypeReg && strings.HasPrefix(h.Name, "opt/cni/bin/") {
		h.Name = "./" + path.Base(h.Name)
		return
	}
	h.Name = ""
}

// flattened is the file system of an image as one plain tar.
func flattened(t *testing.T, img v1.Image, edit change) []byte {
	t.Helper()
	files := mutate.Extract(img)
	defer files.Close()
	var out bytes.Buffer
	from, to := tar.NewReader(files), tar.NewWriter(&out)
	for h, err := from.Next(); !errors.Is(err, io.EOF); h, err = from.Next() {
		must.NoError(t, err)
		h.Name = strings.TrimPrefix(h.Name, "/")
		edit(h)
		if h.Name == "" {
			continue
		}
		h.Format = tar.FormatPAX
		must.NoError(t, to.WriteHeader(h))
		_, err = io.Copy(to, from)
		must.NoError(t, err)
	}
	must.NoError(t, to.Close())
	return out.Bytes()
}

// programsHome is where these images keep the one program that all launchers
// start: it stands for six, and is packed only once.
const programsHome = "usr/libexec/kubernetes/"

func script(program string) string {
	return "#!/bin/sh\nexec /" + programsHome + "hyperkube " + program + " \"$@\"\n"
}

// launcher is the layer with the program of an image of upstream.
func launcher(t *testing.T, program string) []byte {
	t.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range []string{"usr/local/bin/" + program, "go-runner"} {
		must.NoError(t, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(script(program)))}))
		_, err := io.WriteString(w, script(program))
		must.NoError(t, err)
	}
	must.NoError(t, w.Close())
	return out.Bytes()
}

// static returns the program that is kubectl if it has that name. Hosts run it too, where a
// launcher would not find the files of its image.
func static(t *testing.T, hyperkube v1.Image) []byte {
	t.Helper()
	plain := flattened(t, hyperkube, func(h *tar.Header) {
		if h.Name != "usr/local/bin/hyperkube" || h.Typeflag != tar.TypeReg {
			h.Name = ""
		}
	})
	from := tar.NewReader(bytes.NewReader(plain))
	_, err := from.Next()
	must.NoError(t, err)
	program, err := io.ReadAll(from)
	must.NoError(t, err)
	return program
}

func packed(t *testing.T, plain []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	must.NoError(t, err)
	_, err = w.Write(plain)
	must.NoError(t, errors.Join(err, w.Close()))
	return out.Bytes()
}

// Largest is the digest of the largest layer of an image in the registry.
func (o *Official) Largest(t *testing.T, below string) string {
	t.Helper()
	at, err := name.ParseReference(o.Registry+"/official/"+below, name.Insecure)
	must.NoError(t, err)
	img, err := registry.Image(at, registry.WithAuth(&authn.Basic{Username: User, Password: Password}))
	must.NoError(t, err)
	manifest, err := img.Manifest()
	must.NoError(t, err)
	best := manifest.Layers[0]
	for _, l := range manifest.Layers {
		if l.Size > best.Size {
			best = l
		}
	}
	return best.Digest.String()
}
