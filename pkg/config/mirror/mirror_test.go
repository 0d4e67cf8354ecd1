package mirror

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]Mirror{
		"docker.io=mirror.example.com/hub/":   {"docker.io", "mirror.example.com", "hub", false},
		"quay.io=http://10.0.0.1:5000":        {"quay.io", "10.0.0.1:5000", "", true},
		"localhost:5000=https://reg.test:443": {"localhost:5000", "reg.test:443", "", false},
	} {
		got, err := Parse(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
		if again, err := Parse(got.String()); err != nil || again != got {
			t.Errorf("%s is written as %s: %v", text, got, err)
		}
	}
	for _, text := range []string{
		"", "docker.io", "=mirror.test", "docker=mirror.test", "docker.io=mirror", "docker.io=ftp://a.test",
		"docker.io=a.test?b", "../a.test=b.test", "docker.io=me:secret@a.test",
	} {
		if m, err := Parse(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %+v, %v", text, m, err)
		}
	}
}

func TestAListShowsNoPassword(t *testing.T) {
	for list, want := range map[string]string{
		"docker.io=a.test,quay.io=b.test/x":          "",
		"docker.io=a.test,quay.io":                   `"quay.io" must be REGISTRY=HOST`,
		"quay.io=a.test,docker.io=me:sec,ret@b.test": "contains a user",
	} {
		got := ""
		if _, err := ParseList(list); err != nil {
			got = err.Error()
		}
		if want == "" && got != "" || !strings.Contains(got, want) || strings.Contains(got, "sec") {
			t.Errorf("%s: %q, want %q", list, got, want)
		}
	}
	if got := Shown("docker.io=me:secret@a.test"); got != "(hidden)@a.test" {
		t.Errorf("shown is %q", got)
	}
}
