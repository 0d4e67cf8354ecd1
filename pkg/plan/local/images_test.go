package local

import (
	"net"
	"net/url"
	"runtime"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/mirror"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/offline/offlinetest"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// bare returns a host without images, whose cache is empty.
func bare(t *testing.T, cfg config.Config) *Host {
	t.Helper()
	t.Setenv("KUBE_BOOTSTRAP_CACHE", t.TempDir())
	h := &Host{Files: host.Files{Root: t.TempDir()}, Config: cfg, Loads: &bundle.Broadcast{}}
	must.NoError(t, h.UseCatalogue())
	return h
}

func answer(t *testing.T, h *Host) Answer {
	t.Helper()
	return h.Answers[len(h.Answers)-1]
}

func TestABareHostPullsItsImagesOnce(t *testing.T) {
	v, err := image.For("", image.Versions{})
	must.NoError(t, err)
	h := bare(t, offlinetest.Start(t, v, runtime.GOARCH).Settings())
	resolved := h.Resolve(t.Context(), ControlPlane)
	a := answer(t, resolved)
	must.NoError(t, a.Err)
	if !strings.Contains(a.Note, " MB, are pulled from 127.0.0.1:") {
		t.Errorf("the note is %q", a.Note)
	}
	for _, f := range (&step.Runner{}).Check(t.Context(), resolved.Supply.Plan) {
		if strings.HasPrefix(f.Step, "pull ") && !strings.HasSuffix(f.Diff.String(), " MB)") {
			t.Errorf("a dry run says %q of %s", f.Diff, f.Step)
		}
	}
	look := step.Plan{resolved.Stores().LoadAll(resolved.Source()), {resolved.Source().InstallCNIPlugins()}}
	for _, f := range (&step.Runner{}).Check(t.Context(), look) {
		if f.Err != nil && strings.Contains(f.Err.Error(), "no bundle") {
			t.Errorf("a dry run fails: %v", f.Err)
		}
	}
	must.NoError(t, (&step.Runner{}).Do(t.Context(), resolved.Supply.Plan))
	if !h.Files.Exists(offline.HostPath) || h.Files.Exists(pullDir) {
		t.Error("the pull leaves no bundle, or its work")
	}
	if again := h.Resolve(t.Context(), ControlPlane); again.Supply.Plan != nil || answer(t, again).Err != nil {
		t.Errorf("a second run pulls again: %+v", answer(t, again))
	}
}

func TestAHostWithoutImagesAndNetworkIsToldThreeWays(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	must.NoError(t, err)
	must.NoError(t, closed.Close())
	nowhere := config.Default()
	for _, of := range image.Registries {
		nowhere.RegistryMirrors = append(nowhere.RegistryMirrors, mirror.Mirror{Of: of, Host: closed.Addr().String()})
	}
	site := url.URL{Scheme: "https", Host: closed.Addr().String()}
	nowhere.DownloadMirror, nowhere.CNIMirror = site, site
	signed := nowhere
	signed.VerifyKey = must.Write(t, t.TempDir()+"/key.pub", "no key")
	for name, c := range map[string]struct {
		cfg  config.Config
		says []string
	}{
		"no network": {nowhere, []string{"cannot pull them: " + closed.Addr().String() + " cannot be reached", "offline pull", "offline build", "--registry"}},
		"signatures": {signed, []string{"verifyKey requires a signed bundle", "--verify-key"}},
	} {
		t.Run(name, func(t *testing.T) {
			h := bare(t, c.cfg).Resolve(t.Context(), ControlPlane)
			problems := step.Problems(answer(t, h).Err)
			if len(problems) != 1 || problems[0].Name != "images" || !problems[0].Firm || h.Supply.Plan != nil {
				t.Fatalf("got %v and %v", problems, h.Supply.Plan)
			}
			for _, text := range c.says {
				if !strings.Contains(problems[0].Error(), text) {
					t.Errorf("%q does not say %q", problems[0], text)
				}
			}
		})
	}
}
