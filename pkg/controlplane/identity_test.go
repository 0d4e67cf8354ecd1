package controlplane

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// TestTheIdentityOfAClusterIsNotMadeAgain: with other keys, nobody could read
// what etcd holds.
func TestTheIdentityOfAClusterIsNotMadeAgain(t *testing.T) {
	keys := []string{accountKey, encryptionFile}
	for _, a := range authorities {
		keys = append(keys, a.path+".key")
	}
	for _, path := range keys {
		for name, content := range map[string]string{"missing": "", "empty": "", "garbage": "\x00\xff{{"} {
			t.Run(path+" "+name, func(t *testing.T) {
				c := fresh(t)
				issue(t, c)
				if err := c.Files.Remove(path); err != nil {
					t.Fatal(err)
				}
				if name != "missing" {
					if err := c.Files.Write(path, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				before := world(t, c.Files)()
				c.Sealed = true
				_, checked := c.Certificates().Check(t.Context())
				for _, err := range []error{checked, c.Certificates().Apply(t.Context())} {
					problems := step.Problems(err)
					if len(problems) != 1 || problems[0].Name != "cluster-identity" ||
						!strings.Contains(problems[0].Text, path) {
						t.Errorf("got %v", err)
					}
				}
				if after := world(t, c.Files)(); after != before {
					t.Errorf("something was written:\n%s\nbefore:\n%s", after, before)
				}
			})
		}
	}
}

// TestWhatFollowsFromAKey is made again.
func TestWhatFollowsFromAKey(t *testing.T) {
	for _, path := range []string{accountPublic, ClusterCA + ".crt", EtcdCA + ".crt", apiserver + ".crt", AdminConf} {
		for _, content := range []string{"", "garbage"} {
			c := fresh(t)
			issue(t, c)
			hash := authorityHash(t, c)
			if err := c.Files.Write(path, []byte(content), modeOf(path)); err != nil {
				t.Fatal(err)
			}
			c.Sealed = true
			issue(t, c)
			if again := authorityHash(t, c); again != hash {
				t.Errorf("%s: the hash of the authority was %s and is %s", path, hash, again)
			}
			if now, _ := c.Files.Read(path); bytes.Equal(now, []byte(content)) {
				t.Errorf("%s was not made again", path)
			}
		}
	}
}
