package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"

	"filippo.io/age"
	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const (
	// uploadPart is the size of a part of an upload in bytes, which is in memory. S3 permits 10,000 parts of at least
	// 5 MiB: more than etcd can have.
	uploadPart = 5 << 20
	// attempts of each request. The agent tries the whole backup again later.
	attempts = 3
)

// bucket is a Place in an object store with the protocol S3.
type bucket struct {
	client *minio.Client
	name   string
	prefix string // empty, or ends with "/"
}

func openBucket(path string, access S3) (*bucket, error) {
	name, prefix, _ := strings.Cut(strings.TrimPrefix(path, s3Scheme), "/")
	if prefix = strings.Trim(prefix, "/"); prefix != "" {
		prefix += "/"
	}
	if err := s3utils.CheckValidBucketName(name); err != nil {
		return nil, err
	}
	endpoint, err := url.Parse(access.Endpoint)
	if err != nil || endpoint.Host == "" || strings.Trim(endpoint.Path, "/") != "" {
		return nil, fmt.Errorf("the endpoint %q is not a URL such as https://s3.example.com", access.Endpoint)
	}
	client, err := minio.New(endpoint.Host, &minio.Options{
		Creds:  credentials.NewStaticV4(access.AccessKey, access.SecretKey, access.SessionToken),
		Secure: endpoint.Scheme == "https", Region: access.Region, MaxRetries: attempts,
	})
	if err != nil {
		return nil, err
	}
	return &bucket{client: client, name: name, prefix: prefix}, nil
}

// S3Code returns the code of the answer with which a bucket has refused a request, "" if err is something else.
func S3Code(err error) string {
	answer, _ := errors.AsType[minio.ErrorResponse](err)
	return answer.Code
}

// Write implements Place. The object exists once the upload is complete. It is then read again.
func (b *bucket) Write(ctx context.Context, name string, s Source, recipients []age.Recipient) (f File, err error) {
	writers, readers := witnessed(recipients)
	uploaded, err := b.upload(ctx, name, s, writers)
	if err != nil {
		return f, err
	}
	if err := b.readAgain(ctx, name, uploaded.Size, readers); err != nil {
		return f, errors.Join(err, b.Remove(context.WithoutCancel(ctx), name))
	}
	return File{Name: name, Size: uploaded.Size, Version: uploaded.ETag}, nil
}

// upload encrypts while it uploads. An error of the source ends the upload, and no object is made.
func (b *bucket) upload(
	ctx context.Context, name string, s Source, recipients []age.Recipient,
) (minio.UploadInfo, error) {
	from, to := io.Pipe()
	failed := make(chan error, 1)
	go func() {
		err := encode(to, s, recipients)
		to.CloseWithError(err)
		failed <- err
	}()
	options := minio.PutObjectOptions{
		PartSize: uploadPart, ContentType: "application/octet-stream", AutoChecksum: minio.ChecksumNone,
		SendContentMd5: true,
	}
	info, err := b.client.PutObject(ctx, b.name, b.prefix+name, from, -1, options)
	from.CloseWithError(errUploadEnded)
	if source := <-failed; source != nil && !errors.Is(source, errUploadEnded) {
		return info, source
	}
	return info, err
}

var errUploadEnded = errors.New("the upload has ended")

// readAgain checks each byte of an object. The ETag of a multipart upload is no digest of its content.
func (b *bucket) readAgain(ctx context.Context, name string, size int64, identities []age.Identity) error {
	from, err := b.Open(ctx, name)
	if err != nil {
		return err
	}
	defer from.Close()
	counted := &Counter{From: from}
	if _, err := Read(counted, identities, io.Discard); err != nil {
		return fmt.Errorf("the backup that was just written cannot be read: %w", err)
	}
	if counted.Size != size {
		return fmt.Errorf("the backup that was just written has %d bytes of %d", counted.Size, size)
	}
	return nil
}

// List implements Place. It lists no objects of deeper prefixes.
func (b *bucket) List(ctx context.Context) (all []File, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends the listing after an error
	for o := range b.client.ListObjects(ctx, b.name, minio.ListObjectsOptions{Prefix: b.prefix}) {
		if o.Err != nil {
			return nil, o.Err
		}
		if strings.HasSuffix(o.Key, Suffix) {
			all = append(all, File{Name: strings.TrimPrefix(o.Key, b.prefix), Size: o.Size, Version: o.ETag})
		}
	}
	slices.SortFunc(all, func(x, y File) int { return strings.Compare(x.Name, y.Name) })
	return all, nil
}

// Open implements Place.
func (b *bucket) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	object, err := b.client.GetObject(ctx, b.name, b.prefix+name, minio.GetObjectOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := object.Stat(); err != nil { // GetObject itself sends no request
		return nil, errors.Join(err, object.Close())
	}
	return object, nil
}

// Remove implements Place. S3 keeps the parts of an incomplete upload, and has them paid for.
func (b *bucket) Remove(ctx context.Context, name string) error {
	err := b.client.RemoveObject(ctx, b.name, b.prefix+name, minio.RemoveObjectOptions{})
	return errors.Join(err, b.client.RemoveIncompleteUpload(ctx, b.name, b.prefix+name))
}
