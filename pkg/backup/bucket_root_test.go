//go:build root

package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"filippo.io/age"
	"github.com/minio/minio-go/v7"

	"github.com/kube-bootstrap/kube-bootstrap/test/must"
	"github.com/kube-bootstrap/kube-bootstrap/test/objectstore"
)

const bucketName = "backups"

func bucketOf(t *testing.T, s *objectstore.Server, prefix, key, secret string) *bucket {
	t.Helper()
	access := rootAccess(s.URL)
	access.AccessKey, access.SecretKey = key, secret
	b, err := openBucket("s3://"+bucketName+prefix, access)
	must.NoError(t, err)
	return b
}

func rootBucket(t *testing.T, s *objectstore.Server, prefix string) *bucket {
	t.Helper()
	return bucketOf(t, s, prefix, objectstore.RootKey, objectstore.RootSecret)
}

func recipientsOf(t *testing.T) []age.Recipient { return []age.Recipient{newIdentity(t).Recipient()} }

func fileNames(files []File) (names []string) {
	for _, f := range files {
		names = append(names, f.Name)
	}
	return names
}

func TestABackupInABucketIsReadAsItWasWritten(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	for prefix, snapshot := range map[string][]byte{"": snapshotOf(3), "/lab": random(t), "/lab/deep/": snapshotOf(3)} {
		b, id := rootBucket(t, s, prefix), newIdentity(t)
		f, err := b.Write(t.Context(), "cp.backup", sourceOf(snapshot), []age.Recipient{id.Recipient()})
		must.NoError(t, err)
		listed, err := b.List(t.Context())
		must.NoError(t, err)
		if !slices.Equal(listed, []File{f}) {
			t.Errorf("prefix %q: written %+v, listed %+v", prefix, f, listed)
		}
		from, err := b.Open(t.Context(), f.Name)
		must.NoError(t, err)
		read := &Counter{From: from}
		if _, err := Read(read, []age.Identity{id}, io.Discard); err != nil || read.Size != f.Size {
			t.Errorf("prefix %q: %v after %d bytes of %d", prefix, err, read.Size, f.Size)
		}
		must.NoError(t, from.Close())
	}
}

func TestAListHasOnlyTheFilesOfItsPrefix(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	for key, content := range map[string]string{
		"lab/": "", "lab/empty.backup": "", "lab/notes.txt": "x", "lab2/other.backup": "x",
		"lab/deep/other.backup": "x",
	} {
		_, err := rootBucket(t, s, "").client.PutObject(t.Context(), bucketName, key, strings.NewReader(content),
			int64(len(content)), minio.PutObjectOptions{})
		must.NoError(t, err)
	}
	for _, prefix := range []string{"/lab", "/lab/"} {
		listed, err := rootBucket(t, s, prefix).List(t.Context())
		must.NoError(t, err)
		if len(listed) != 1 || listed[0].Name != "empty.backup" || listed[0].Size != 0 {
			t.Errorf("%s: %+v", prefix, listed)
		}
	}
}

func TestAnUploadWithoutItsEndMakesNoObject(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	b, gone := rootBucket(t, s, "/lab"), errors.New("etcd is gone")
	failing := sourceOf(nil)
	failing.Snapshot = func(to io.Writer) error {
		_, err := to.Write(random(t))
		return errors.Join(err, gone)
	}
	if _, err := b.Write(t.Context(), "cp.backup", failing, recipientsOf(t)); !errors.Is(err, gone) {
		t.Errorf("the error is %v", err)
	}
	cut := snapshotOf(3)[pageMultiple:]
	if _, err := b.Write(t.Context(), "cp.backup", sourceOf(cut), recipientsOf(t)); err == nil {
		t.Error("a snapshot with another hash is accepted")
	}
	listed, err := b.List(t.Context())
	if err != nil || len(listed) > 0 || uploads(b) != 0 {
		t.Errorf("%v, it leaves %v and %d uploads", err, fileNames(listed), uploads(b))
	}
}

// incomplete returns the number of uploads that S3 waits to be continued.
func uploads(b *bucket) (n int) {
	for range b.client.ListIncompleteUploads(context.Background(), b.name, b.prefix, true) {
		n++
	}
	return n
}

func TestRemoveRemovesWhatAKilledUploadHasLeft(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	b := rootBucket(t, s, "/lab")
	core := minio.Core{Client: b.client}
	_, err := core.NewMultipartUpload(t.Context(), bucketName, "lab/cp.backup", minio.PutObjectOptions{})
	must.NoError(t, err)
	if uploads(b) != 1 {
		t.Fatal("there is no incomplete upload")
	}
	must.NoError(t, b.Remove(t.Context(), "cp.backup"))
	must.NoError(t, b.Remove(t.Context(), "cp.backup"))
	if n := uploads(b); n != 0 {
		t.Errorf("%d incomplete uploads", n)
	}
}

const writeOnly = `{"Version": "2012-10-17", "Statement": [
	{"Effect": "Allow", "Principal": {"AWS": ["` + objectstore.UserKey + `"]},
	 "Action": ["s3:PutObject", "s3:GetObject", "s3:AbortMultipartUpload"], "Resource": "arn:aws:s3:::backups/*"},
	{"Effect": "Allow", "Principal": {"AWS": ["` + objectstore.UserKey + `"]},
	 "Action": ["s3:ListBucket", "s3:ListBucketMultipartUploads"], "Resource": "arn:aws:s3:::backups"}]}`

func TestWithoutTheRightToDeleteABackupIsGood(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	must.NoError(t, rootBucket(t, s, "").client.SetBucketPolicy(t.Context(), bucketName, writeOnly))
	b := bucketOf(t, s, "/lab", objectstore.UserKey, objectstore.UserSecret)
	f, err := b.Write(t.Context(), "cp.backup", sourceOf(snapshotOf(3)), recipientsOf(t))
	must.NoError(t, err)
	if err := b.Remove(t.Context(), f.Name); S3Code(err) != minio.AccessDenied {
		t.Errorf("remove: %v", err)
	}
	if _, err := b.List(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABucketNamesWhyItRefuses(t *testing.T) {
	s := objectstore.Start(t, bucketName)
	other, err := openBucket("s3://other", rootAccess(s.URL))
	must.NoError(t, err)
	for want, b := range map[string]*bucket{
		minio.NoSuchBucket:      other,
		"SignatureDoesNotMatch": bucketOf(t, s, "", objectstore.RootKey, "wrong"),
		minio.AccessDenied:      bucketOf(t, s, "", objectstore.UserKey, objectstore.UserSecret),
	} {
		_, err := b.Write(t.Context(), "cp.backup", sourceOf(snapshotOf(3)), recipientsOf(t))
		if S3Code(err) != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v, not %s", err, want)
		}
	}
	s.Stop()
	_, err = rootBucket(t, s, "").Write(t.Context(), "cp.backup", sourceOf(snapshotOf(3)), recipientsOf(t))
	if !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("without a server: %v", err)
	}
}

func TestAClockThatIsTwentyMinutesOffIsNamed(t *testing.T) {
	s, began := objectstore.Start(t, bucketName), time.Now()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(began.Add(20 * time.Minute))) // the clock of the bubble begins in 2000
		_, err := rootBucket(t, s, "").List(t.Context())
		if S3Code(err) != "RequestTimeTooSkewed" {
			t.Error(fmt.Errorf("the error is %w", err))
		}
		s.Stop() // ends the connections, which the bubble waits for
	})
}

func TestABackupInABucketIsCompleteAfterAKill(t *testing.T) {
	survivesKills(t, "s3://"+bucketName+"/lab", objectstore.Start(t, bucketName).URL)
}

func TestAFullDiskIsNamed(t *testing.T) {
	dir := t.TempDir()
	must.NoError(t, syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m"))
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	_, err := Directory{dir}.Write(t.Context(), "cp.backup", sourceOf(random(t)), recipientsOf(t))
	if !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("the error is %v", err)
	}
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("it leaves %v", left)
	}
}
