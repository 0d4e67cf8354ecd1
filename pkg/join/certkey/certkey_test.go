package certkey

import (
	"fmt"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestKeyStaysHidden(t *testing.T) {
	key := New()
	if text := fmt.Sprintf("%v %+v %#v %s %x", key, key, key, key, key); strings.Contains(text, key.Reveal()) {
		t.Error(text)
	}
	again, err := Parse(key.Reveal() + "\n")
	if err != nil || again.Reveal() != key.Reveal() {
		t.Error(err)
	}
	for _, bad := range []string{"", "12", strings.Repeat("z", 64)} {
		if _, err := Parse(bad); len(step.Problems(err)) != 1 {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
