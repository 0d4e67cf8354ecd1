package dump

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestRedactText has the notations of secrets that occur in logs, environments
// and command lines. Each contains the word hunter22 or a part of a key.
func TestRedactText(t *testing.T) {
	for _, text := range []string{
		"DB_PASSWORD=hunter22", "KUBE_BOOTSTRAP_REGISTRY_PASSWORD=hunter22", "AWS_SECRET_ACCESS_KEY=hunter22/abc",
		"AWS_ACCESS_KEY_ID: hunter22", "apiKey: hunter22", `"api_key": "hunter22 and more"`,
		"client-key-data: hunter22==",
		"Authorization: Basic hunter22hunter22==", "authorization: Bearer hunter22.x",
		"postgres://u:hunter22@db:5432/x",
		"run --password hunter22 --verbose", "run --password=hunter22", "run --token hunter22x", "password = hunter22",
		`{"auth":{"password":"hunter22"}}`, "passphrase: 'hunter22 two'", "sessionToken: hunter22",
		"KUBE_BOOTSTRAP_CERTIFICATE_KEY=hunter22", "DB_PWD=hunter22", "SECRET_KEY_BASE=hunter22",
		"JWT_SIGNING_KEY: hunter22",
		"AccountName=x;AccountKey=hunter22==", `auth = "hunter22"`, `X-Registry-Auth: hunter22`,
		`msg="login with password=hunter22 failed"`, `--from-literal=password=hunter22`, `["--token","hunter22"]`,
		`- --token "hunter22"`,
		`body="{\"password\":\"hunter22\"}"`, `{"password":"a\"hunter22"}`, `password="hunter22 and more`,
		`registry_token: 'hunter22`,
		"MIIhunter22hunter22/abc\nMIIhunter22hunter22\n-----END PRIVATE KEY-----",
		"-----BEGIN PRIVATE KEY-----\nMIIhunter22",
		"LS0tLS1CRUdJTiBSU0EgUFJJVkFURSBLRVkhunter22", "dckr_pat_hunter22hunter22hunter22",
		"github_pat_hunter22hunter22_hunter22", "AIzahunter22hunter22hunter22", "npm_hunter22hunter22hunter22",
		"key sk-hunter22hunter22hunter22",
		"https://x.blob/y?sv=1&sig=hunter22%3D", "https://x/y?X-Amz-Signature=hunter22&z=1", "Cookie: a=1; b=hunter22",
		`"set-cookie":"a=hunter22; Path=/"`,
		"curl -u admin:hunter22 https://x", "curl --user=admin:hunter22 https://x",
	} {
		if got := string(Redact([]byte(text))); strings.Contains(got, "hunter22") || strings.Contains(got, "and more") {
			t.Errorf("%s became %s", text, got)
		}
	}
}

// TestRedactTextKeeps: a dump must still explain the node.
func TestRedactTextKeeps(t *testing.T) {
	for _, text := range []string{
		"secretName: web-tls", "tokenFile: /var/run/secrets/token", "the token expired at 12:00",
		"--service-account-key-file=/etc/sa.pub",
		"image: x@sha256:" + strings.Repeat("0a", 32), "https://10.0.0.1:6443/healthz",
		"--authentication-token-webhook true", "PWD=/root",
		`{"token-ttl":"24h","steps":[]}`, "journalctl -u docker: not found", "task-1234567890123456789",
		"docker run -u 0:0 x", `key: "a" value: 'b'`, "--service-account-signing-key-file=/etc/kubernetes/pki/sa.key",
	} {
		if got := string(Redact([]byte(text))); got != text {
			t.Errorf("%s became %s", text, got)
		}
	}
	if got := string(Redact([]byte("key " + strings.Repeat("0a", 32)))); got != "key 0a0a0a0a0a0a(shortened)" {
		t.Errorf("a long hexadecimal number became %s", got)
	}
}

func TestRedactKeepsJSON(t *testing.T) {
	const text = `{"password":"hunter22","a":"{\"token\":\"hunter22\"}","b":["--secret","hunter22"],"c":1}`
	got := Redact([]byte(text))
	if !json.Valid(got) || strings.Contains(string(got), "hunter22") {
		t.Errorf("%s", got)
	}
}
