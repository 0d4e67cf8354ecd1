package bundle

import (
	"strings"
	"testing"
)

func TestALayerOfAWrongSizeIsNamed(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0", 64)
	_, err := parseStored([]byte(`{"layers": {"` + digest + `": {"digest": "` + digest + `", "size": -1}}}`))
	if want := "how it is stored: layer " + digest + ": -1 bytes"; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
