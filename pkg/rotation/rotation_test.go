package rotation

import (
	"slices"
	"testing"
)

func TestOrderOfTheKeys(t *testing.T) {
	for _, c := range []struct {
		phase Phase
		have  []string
		want  []string
	}{
		{Accept, []string{"old"}, []string{"old", "new"}},
		{Accept, []string{"old", "new"}, []string{"old", "new"}},
		{Use, []string{"old", "new"}, []string{"new", "old"}},
		{Use, []string{"new", "old"}, []string{"new", "old"}},
		{Use, []string{"old"}, []string{"new", "old"}},
		{Drop, []string{"new", "old"}, []string{"new"}},
		{Drop, []string{"new"}, []string{"new"}},
	} {
		have := slices.Clone(c.have)
		if got := Order(c.phase, c.have, "new"); !slices.Equal(got, c.want) {
			t.Errorf("phase %d, before %q: %q, want %q", c.phase, c.have, got, c.want)
		}
		if !slices.Equal(c.have, have) {
			t.Errorf("phase %d changed its argument to %q", c.phase, c.have)
		}
	}
}

// TestEachPhaseOfEachRotationIsNotedDifferently: the text is part of the stored format.
func TestEachPhaseOfEachRotationIsNotedDifferently(t *testing.T) {
	for want, r := range map[string]Rotation{
		"a/1": {ID: "a", Phase: Accept}, "a/2": {ID: "a", Phase: Use}, "a/3": {ID: "a", Phase: Drop},
		"b/1": {ID: "b", Phase: Accept}, "b/2": {ID: "b", Phase: Use}, "b/3": {ID: "b", Phase: Drop},
	} {
		if got := r.Rollout().String(); got != want {
			t.Errorf("%v: %q, want %q", r, got, want)
		}
	}
}

func TestWordsOfARotation(t *testing.T) {
	for _, c := range []struct {
		of   Rotation
		want string
	}{
		{Rotation{Subject: "encryption-key", Phase: Accept}, "rotate the encryption key: accept the new key"},
		{Rotation{Subject: Authorities, Phase: Use}, "rotate the certificate authorities: use the new authorities"},
		{Rotation{Subject: Authorities, Phase: Drop}, "rotate the certificate authorities: drop the old authorities"},
	} {
		if got := c.of.String(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
