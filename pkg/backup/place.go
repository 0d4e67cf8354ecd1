package backup

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"filippo.io/age"
)

// Suffix ends the name of each backup.
const Suffix = ".backup"

// Name returns the name of a new backup of a host.
func Name(host string, now time.Time) string {
	return host + "-" + now.UTC().Format("20060102T150405Z") + Suffix
}

// Place is where backups are stored: a directory of this host, or a bucket.
type Place interface {
	// Write writes a backup under a new name and reads it again. A backup that fails is not in the list.
	Write(ctx context.Context, name string, s Source, recipients []age.Recipient) (File, error)
	// List returns the files of the place whose names end with Suffix, sorted by name.
	List(ctx context.Context) ([]File, error)
	Open(ctx context.Context, name string) (io.ReadCloser, error)
	// Remove removes a file and what an interrupted Write has left of it. The file may be missing.
	Remove(ctx context.Context, name string) error
}

// File is a file of a place.
type File struct {
	Name string `json:"name"`
	Size int64  `json:"size"` // bytes
	// Version differs once the file is replaced: the time of its last change, or the ETag of an object.
	Version string `json:"version"`
}

const s3Scheme = "s3://"

// InBucket reports whether a place or a file of one is in a bucket: "s3://BUCKET/PREFIX".
func InBucket(path string) bool { return strings.HasPrefix(path, s3Scheme) }

// OpenPlace returns the place with a path: "s3://BUCKET/PREFIX", or an absolute path of a directory.
func OpenPlace(path string, access S3) (Place, error) {
	if InBucket(path) {
		return openBucket(path, access)
	}
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("%q is neither the absolute path of a directory nor s3://BUCKET/PREFIX", path)
	}
	return Directory{filepath.Clean(path)}, nil
}

// Join returns the path of a file of a place.
func Join(place, name string) string { return strings.TrimRight(place, "/") + "/" + name }

// Split returns the place and the name of a file in a bucket.
func Split(path string) (place, name string) {
	at := strings.LastIndex(path, "/")
	return path[:at+1], path[at+1:]
}

// Counter counts the bytes of a reader.
type Counter struct {
	From io.Reader
	Size int64
}

func (c *Counter) Read(data []byte) (int, error) {
	n, err := c.From.Read(data)
	c.Size += int64(n)
	return n, err
}
