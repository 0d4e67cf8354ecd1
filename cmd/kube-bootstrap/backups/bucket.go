package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
)

// bucketFlags are the flags that state how a bucket is reached.
type bucketFlags struct{ endpoint, region, credentials *string }

func addBucket(c *cobra.Command) bucketFlags {
	return bucketFlags{
		endpoint: c.Flags().String("s3-endpoint", backup.DefaultEndpoint, "URL of the server of s3://BUCKET"),
		region:   c.Flags().String("s3-region", "", "region of the bucket; empty: ask the server"),
		credentials: c.Flags().String("s3-credentials", "",
			"file with the credentials of s3://BUCKET, as those of AWS; - is stdin"),
	}
}

// opener opens the file with a path.
type opener func(ctx context.Context, path string) (io.ReadCloser, error)

// opener returns the opener of the files beside a path.
func (f bucketFlags) opener(stdin io.Reader, path string) (opener, error) {
	if !backup.InBucket(path) {
		return func(_ context.Context, path string) (io.ReadCloser, error) { return os.Open(path) }, nil
	}
	access, err := f.access(stdin, path)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, path string) (io.ReadCloser, error) {
		dir, name := backup.Split(path)
		place, err := backup.OpenPlace(dir, access)
		if err != nil {
			return nil, err
		}
		return place.Open(ctx, name)
	}, nil
}

// access returns how a path is reached: as the flags state, or as a file of this host.
func (f bucketFlags) access(stdin io.Reader, path string) (s backup.S3, err error) {
	if !backup.InBucket(path) {
		return s, nil
	}
	if *f.credentials == "" {
		return s, errors.New("--s3-credentials is missing: give the file with the credentials of the bucket")
	}
	s = backup.S3{Endpoint: *f.endpoint, Region: *f.region}
	if err := s.ReadCredentials(*f.credentials, stdin); err != nil {
		return backup.S3{}, fmt.Errorf("--s3-credentials: %w", err)
	}
	return s, nil
}
