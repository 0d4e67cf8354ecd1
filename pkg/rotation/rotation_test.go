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

func TestEachPhaseOfEachRotationHasAMarkOfItsOwn(t *testing.T) {
	seen := map[string]Rotation{}
	for _, id := range []string{"a", "b"} {
		for _, phase := range []Phase{Accept, Use, Drop} {
			r := Rotation{ID: id, Phase: phase}
			if other, ok := seen[r.mark()]; ok {
				t.Errorf("%v and %v", r, other)
			}
			seen[r.mark()] = r
		}
	}
}

// An ID is a time in UTC, to the second, in digits of a fixed number.
func TestWhatAHostHasPassed(t *testing.T) {
	const first, second = "2026-09-30T23:59:59Z", "2026-10-01T00:00:00Z"
	for _, c := range []struct {
		of   Rotation
		mark string
		want bool
	}{
		{Rotation{ID: first, Phase: Use}, "", false},
		{Rotation{ID: first, Phase: Use}, "unreadable", false},
		{Rotation{ID: first, Phase: Use}, first + "/1", false},
		{Rotation{ID: first, Phase: Use}, first + "/2", false},
		{Rotation{ID: first, Phase: Use}, first + "/3", true},
		{Rotation{ID: first, Phase: Drop}, second + "/1", true},
		{Rotation{ID: second, Phase: Accept}, first + "/3", false},
	} {
		if got := c.of.before(c.mark); got != c.want {
			t.Errorf("%v with the mark %q: %t", c.of, c.mark, got)
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
