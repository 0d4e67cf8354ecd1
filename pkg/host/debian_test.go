package host

import "testing"

func TestDebianSourcesInBothForms(t *testing.T) {
	for text, want := range map[string]string{
		"Types: deb\nURIs: http://mirror.example/debian\nSuites: trixie\n":   "http://mirror.example/debian",
		"deb http://mirror.example/debian trixie main\n":                     "http://mirror.example/debian",
		"# x\ndeb [arch=amd64] https://mirror.example/debian/ trixie main\n": "https://mirror.example/debian",
		"deb http://mirror.example/ubuntu noble main\n":                      "",
		"URIs: http://mirror.example/debian-security\n":                      "",
	} {
		got := ""
		if m := debianSource.FindStringSubmatch(text); m != nil {
			got = m[1]
		}
		if got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestDebianMirrorFromTheEnvironment(t *testing.T) {
	t.Setenv(mirrorVariable, "http://mirror.example/debian")
	if got, err := DebianMirror(); err != nil || got != "http://mirror.example/debian" {
		t.Errorf("%q, %v", got, err)
	}
}
