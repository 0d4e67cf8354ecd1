package backup

import (
	"errors"
	"fmt"
	"io"
	"os"

	"gopkg.in/ini.v1"
)

// DefaultEndpoint is the endpoint of Amazon S3.
const DefaultEndpoint = "https://s3.amazonaws.com"

// S3 is how a bucket is reached. It is zero for a directory.
type S3 struct {
	Endpoint     string `json:"endpoint,omitempty"` // URL
	Region       string `json:"region,omitempty"`
	AccessKey    string `json:"accessKey,omitempty"`
	SecretKey    string `json:"secretKey,omitempty"`
	SessionToken string `json:"sessionToken,omitempty"`
}

// WithoutSecrets returns what may be printed.
func (s S3) WithoutSecrets() S3 { return S3{Endpoint: s.Endpoint, Region: s.Region} }

// largestCredentials is more than a file of credentials has, in bytes.
const largestCredentials = 64 << 10

// ReadCredentials sets the keys from the section "default" of a file of credentials of AWS, or of stdin if the path
// is "-". Others must not be able to read the file.
func (s *S3) ReadCredentials(path string, stdin io.Reader) error {
	from := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		if info, err := file.Stat(); err != nil || info.Mode().Perm()&0o077 != 0 {
			return errors.Join(err, fmt.Errorf("other users can read %s; run `chmod 600 %[1]s`", path))
		}
		from = file
	}
	data, err := io.ReadAll(io.LimitReader(from, largestCredentials))
	if err != nil {
		return err
	}
	return s.parseCredentials(data)
}

// parseCredentials quotes nothing from data in its errors, because data are secret.
func (s *S3) parseCredentials(data []byte) error {
	parsed, err := ini.Load(data)
	if err != nil {
		return errors.New("it is not a file of credentials of AWS")
	}
	section := parsed.Section("default")
	s.AccessKey = section.Key("aws_access_key_id").String()
	s.SecretKey = section.Key("aws_secret_access_key").String()
	s.SessionToken = section.Key("aws_session_token").String()
	if s.AccessKey == "" || s.SecretKey == "" {
		return errors.New("its section [default] does not have aws_access_key_id and aws_secret_access_key")
	}
	return nil
}
