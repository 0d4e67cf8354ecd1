package backup

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

// snapshotOf returns a snapshot as etcd sends it: pages, and their hash.
func snapshotOf(pages int) []byte {
	return hashOf(bytes.Repeat([]byte("page of etcd    "), pages*pageMultiple/16))
}

// hashOf returns data with their hash.
func hashOf(data []byte) []byte {
	sum := sha256.Sum256(data)
	return append(data, sum[:]...)
}

func sourceOf(snapshot []byte) Source {
	return Source{
		Origin: Origin{Host: "cp", Kubernetes: "v1.37.2", Created: time.Unix(1_700_000_000, 0).UTC()},
		Files: []host.File{
			{Path: "/etc/kubernetes/pki/ca.key", Data: []byte("secret of the cluster")},
			{Path: "/etc/kubernetes/pki/ca.crt", Data: []byte("certificate"), Mode: 0o644},
			{Path: "/var/lib/kube-bootstrap/empty"},
		},
		Snapshot: func(to io.Writer) error {
			for chunk := range slices.Chunk(snapshot, 32<<10) {
				if _, err := to.Write(chunk); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

func newIdentity(t *testing.T) *age.X25519Identity {
	t.Helper()
	id, err := age.GenerateX25519Identity()
	must.NoError(t, err)
	return id
}

func written(t *testing.T, snapshot []byte, recipients ...age.Recipient) []byte {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	must.NoError(t, Write(path, sourceOf(snapshot), recipients))
	data, err := os.ReadFile(path)
	must.NoError(t, err)
	return data
}

func TestABackupIsReadAsItWasWritten(t *testing.T) {
	id, other := newIdentity(t), newIdentity(t).Recipient()
	hybrid, err := age.GenerateHybridIdentity()
	must.NoError(t, err)
	for name, c := range map[string]struct {
		recipients []age.Recipient
		identities []age.Identity
		pages      int
	}{
		"not encrypted":                {nil, nil, 3},
		"for one recipient":            {[]age.Recipient{id.Recipient()}, []age.Identity{id}, 3},
		"for the second of two":        {[]age.Recipient{other, id.Recipient()}, []age.Identity{id}, 3},
		"for a post-quantum recipient": {[]age.Recipient{hybrid.Recipient()}, []age.Identity{hybrid}, 3},
		"with parts of the snapshot":   {nil, nil, 3 * partSize / pageMultiple},
	} {
		snapshot, read := snapshotOf(c.pages), bytes.Buffer{}
		got, err := Read(bytes.NewReader(written(t, snapshot, c.recipients...)), c.identities, &read)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		want := sourceOf(nil)
		if !bytes.Equal(read.Bytes(), snapshot) {
			t.Errorf("%s: the snapshot has %d bytes of %d, or differs", name, read.Len(), len(snapshot))
		}
		if got.Manifest.Host != "cp" || !got.Manifest.Created.Equal(want.Origin.Created) {
			t.Errorf("%s: the manifest is %+v", name, got.Manifest)
		}
		for _, f := range want.Files {
			if !bytes.Equal(got.File(f.Path), f.Data) {
				t.Errorf("%s: %s is %q", name, f.Path, got.File(f.Path))
			}
		}
		if got.Files[1].Mode != 0o644 || got.Files[0].Mode != 0o600 {
			t.Errorf("%s: the modes are %o and %o", name, got.Files[0].Mode, got.Files[1].Mode)
		}
	}
}

func TestADamagedBackupIsRefused(t *testing.T) {
	id, seed := newIdentity(t), uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	good := written(t, snapshotOf(40), id.Recipient())
	refused := func(what string, data []byte) {
		if _, err := Read(bytes.NewReader(data), []age.Identity{id}, io.Discard); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	for i := range 10 {
		at := i * len(good) / 10
		refused(fmt.Sprintf("cut at %d of %d", at, len(good)), good[:at])
	}
	for range 100 {
		at, flipped := random.IntN(len(good)), slices.Clone(good)
		flipped[at] ^= 1 << random.IntN(8)
		refused(fmt.Sprintf("flipped at %d of %d", at, len(good)), flipped)
	}
	refused("a byte more", append(slices.Clone(good), 0))
	refused("twice", append(slices.Clone(good), good...))
	for _, none := range [][]age.Identity{nil, {newIdentity(t)}} {
		if _, err := Read(bytes.NewReader(good), none, io.Discard); !errors.Is(err, ErrSealed) {
			t.Errorf("with another key: %v", err)
		}
	}
}

// TestAPlainBackupHasNoOtherContents: a changed byte is an error, or changes nothing that is read.
func TestAPlainBackupHasNoOtherContents(t *testing.T) {
	good, snapshot := written(t, snapshotOf(40)), snapshotOf(40)
	for at := range good {
		flipped, read := slices.Clone(good), bytes.Buffer{}
		flipped[at] ^= 1 << (at % 8)
		got, err := Read(bytes.NewReader(flipped), nil, &read)
		same := func() bool { return string(got.Files[0].Data) == "secret of the cluster" }
		if err == nil && (!bytes.Equal(read.Bytes(), snapshot) || !same()) {
			t.Errorf("flipped at %d: accepted with other contents", at)
		}
		if at > 0 && at%7 == 0 {
			if _, err := Read(bytes.NewReader(good[:at]), nil, io.Discard); err == nil {
				t.Errorf("cut at %d: accepted", at)
			}
		}
	}
}

func TestASnapshotWithoutItsHashGetsNoName(t *testing.T) {
	for name, snapshot := range map[string][]byte{
		"none":            nil,
		"without a hash":  snapshotOf(3)[:3*pageMultiple],
		"cut":             snapshotOf(3)[pageMultiple:],
		"of another hash": append(snapshotOf(3)[:3*pageMultiple], bytes.Repeat([]byte{1}, sha256.Size)...),
	} {
		dir := t.TempDir()
		err := Write(filepath.Join(dir, "file"), sourceOf(snapshot), nil)
		if err == nil || !strings.Contains(err.Error(), "hash") {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := os.ReadDir(dir); len(left) > 0 {
			t.Errorf("%s: it leaves %v", name, left)
		}
	}
}

func TestAFailedSnapshotLeavesTheFileBefore(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	must.Write(t, path, "before")
	failing := sourceOf(nil)
	failing.Snapshot = func(io.Writer) error { return errors.New("etcd is gone") }
	if err := Write(path, failing, nil); err == nil || !strings.Contains(err.Error(), "etcd is gone") {
		t.Errorf("the error is %v", err)
	}
	if data, _ := os.ReadFile(path); string(data) != "before" {
		t.Errorf("the file is %q", data)
	}
}

func TestRecipientsAreKeysOrFiles(t *testing.T) {
	one, two := newIdentity(t).Recipient().String(), newIdentity(t).Recipient().String()
	file := filepath.Join(t.TempDir(), "recipients")
	must.Write(t, file, "# the administrators\n"+one+"\n"+two+"\n")
	for text, want := range map[string]int{one: 1, file: 2, "age1wrong": 0, "/nowhere": 0} {
		got, err := Recipients([]string{text})
		if len(got) != want || (err != nil) != (want == 0) {
			t.Errorf("%s: %d recipients, %v", text, len(got), err)
		}
	}
}
