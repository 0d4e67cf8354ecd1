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

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/extension"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/link"
)

// published maps the name of an addon or pod network to the URL and checksum
// of its published manifest.
var published = map[string]string{
	extension.CNICalico: "https://raw.githubusercontent.com/projectcalico/calico/v3.32.1/manifests/calico.yaml" +
		"#sha256:a1df919d9721cf667accdc3e72848911b0cb25cfab7d2478ad0c996302c95744",
	// v2.7.0 is the last release that consists of one manifest.
	extension.AddonDashboard: "https://raw.githubusercontent.com/kubernetes/dashboard/v2.7.0/aio/deploy/recommended.yaml" +
		"#sha256:943ae40251f1ba64ef012c53271bf6766d1883dd024093e854567b56443764b8",
}

// Where returns the URL of a published manifest, or name.
func Where(name string) string { return cmp.Or(published[name], name) }

// CheckManifest returns an error if a manifest cannot be applied.
func CheckManifest(text []byte) error {
	objects, err := kube.Objects(text)
	if err == nil && len(objects) == 0 {
		err = fmt.Errorf("contains no object")
	}
	return err
}

// manifestLimit is the maximum size of a manifest in bytes.
const manifestLimit = 16 << 20

// Download fetches a manifest. It verifies a URL that ends in #sha256:HEX. It
// does not follow other URLs to plain HTTP.
func Download(ctx context.Context, from string) ([]byte, error) {
	address, sum, pinned := strings.Cut(from, "#sha256:")
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, err
	}
	through := http.DefaultTransport
	if !pinned {
		through = link.HTTPSOnly{Next: through}
	}
	asks := http.Client{Transport: link.Retry{Next: through, ConnectAttempts: 1}}
	answer, err := asks.Do(request)
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
