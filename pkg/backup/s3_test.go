package backup

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

const credentialsFile = "[default]\naws_access_key_id = key\naws_secret_access_key = hidden\n"

func TestCredentialsComeFromAFileThatOthersCannotRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s3.ini")
	must.Write(t, path, credentialsFile)
	must.NoError(t, os.Chmod(path, 0o644))
	var s S3
	if err := s.ReadCredentials(path, nil); err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
		t.Errorf("of mode 644: %v", err)
	}
	must.NoError(t, os.Chmod(path, 0o600))
	must.NoError(t, s.ReadCredentials(path, nil))
	if s.AccessKey != "key" || s.SecretKey != "hidden" {
		t.Errorf("the keys are %+v", s)
	}
	if s.WithoutSecrets() != (S3{}) {
		t.Errorf("printed: %+v", s.WithoutSecrets())
	}
}

func TestCredentialsAreNotInErrors(t *testing.T) {
	for name, text := range map[string]string{
		"no section":   "aws_secret_access_key = hidden\n",
		"no key":       "[default]\naws_secret_access_key = hidden\n",
		"not INI":      "hidden",
		"half a table": "[default\nhidden = hidden",
	} {
		var s S3
		err := s.ReadCredentials("-", strings.NewReader(text))
		if err == nil || strings.Contains(err.Error(), "hidden") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAPlaceIsADirectoryOrABucket(t *testing.T) {
	for path, access := range map[string]S3{
		"backups": {}, "s3://": {Endpoint: DefaultEndpoint}, "s3://backups/a": {Endpoint: "s3.example.com"},
		"s3://backups/b": {Endpoint: "https://s3.example.com/c"},
	} {
		if _, err := OpenPlace(path, access); err == nil {
			t.Errorf("%s with the endpoint %q is accepted", path, access.Endpoint)
		}
	}
	for path, want := range map[string]string{
		"s3://backups": "", "s3://backups/": "", "s3://backups/a/b": "a/b/", "s3://backups//a/b/": "a/b/",
	} {
		place, err := OpenPlace(path, S3{Endpoint: "https://s3.example.com"})
		must.NoError(t, err)
		if b := place.(*bucket); b.name != "backups" || b.prefix != want {
			t.Errorf("%s: bucket %q, prefix %q", path, b.name, b.prefix)
		}
	}
}
