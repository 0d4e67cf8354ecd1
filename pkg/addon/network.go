package addon

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ApplyNetwork applies the manifest of a pod network that is not ours.
func (a Addons) ApplyNetwork(manifest func() ([]byte, error)) step.Step {
	return a.step("apply the pod network", manifest)
}

// Flannel renders flannel as a pod network that runs in pods itself.
func (a Addons) Flannel() ([]byte, error) {
	var out bytes.Buffer
	if err := templates.ExecuteTemplate(&out, "flannel.yaml", a.withDefaults()); err != nil {
		return nil, fmt.Errorf("render flannel.yaml: %w", err)
	}
	return out.Bytes(), nil
}

// ServerHost and ServerPort are the two halves of Server.
func (s Settings) ServerHost() (string, error) {
	u, err := url.Parse(s.Server)
	return u.Hostname(), err
}

// ServerPort is the port of Server.
func (s Settings) ServerPort() (string, error) {
	u, err := url.Parse(s.Server)
	return u.Port(), err
}

// CheckManifest says what is wrong with YAML that shall be applied.
func CheckManifest(text []byte) error {
	objects, err := kube.Objects(text)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("holds no object")
	}
	return err
}

// manifestLimit is far above any manifest there is, and far below what would
// hurt the host.
const manifestLimit = 16 << 20

// Download fetches a manifest. A URL that ends in #sha256:HEX is held to it.
func Download(ctx context.Context, from string) ([]byte, error) {
	address, sum, pinned := strings.Cut(from, "#sha256:")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("get %s: %s", address, answer.Status)
	}
	data, err := io.ReadAll(io.LimitReader(answer.Body, manifestLimit+1))
	if err != nil {
		return nil, fmt.Errorf("get %s: %w", address, err)
	}
	if len(data) > manifestLimit {
		return nil, fmt.Errorf("get %s: more than %d MiB", address, manifestLimit>>20)
	}
	got := sha256.Sum256(data)
	if hex := hex.EncodeToString(got[:]); pinned && hex != sum {
		return nil, fmt.Errorf("get %s: its sum is sha256:%s, not sha256:%s", address, hex, sum)
	}
	return data, nil
}
