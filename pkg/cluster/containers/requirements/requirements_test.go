package requirements

import (
	"errors"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func TestEngineFit(t *testing.T) {
	for version, want := range map[string]bool{
		"19.3.1": true, "20.10.24+dfsg1": false, "20.9": true, "28.5.2": false, "library-import": false, "": false,
	} {
		if errs := engineFit(version); len(errs) > 0 != want {
			t.Errorf("%q: %v", version, errs)
		}
	}
	problems := step.Problems(errors.Join(engineFit("19.03.15")...))
	if len(problems) != 1 || problems[0].Name != "engine-version" || !strings.Contains(problems[0].Text, "19.03.15") {
		t.Errorf("an engine that is too old: %v", problems)
	}
}
