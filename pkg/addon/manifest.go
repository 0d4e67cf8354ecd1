package addon

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
)

// named are the addons that are known by name, and where their makers publish
// the manifest.
var named = map[string]string{
	// The last release that comes as one manifest.
	config.AddonDashboard: "https://raw.githubusercontent.com/kubernetes/dashboard/v2.7.0/aio/deploy/recommended.yaml",
}

// Where returns where the manifest of an addon is: its URL, if the addon is
// known by its name, else what it was called.
func Where(name string) string { return cmp.Or(named[name], name) }

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
