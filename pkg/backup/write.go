package backup

import (
	"archive/tar"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"

	"filippo.io/age"
	"github.com/klauspost/compress/zstd"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
)

// Source is what a backup is made from.
type Source struct {
	Origin Origin
	Files  []host.File
	// Snapshot writes etcd's snapshot. The last 32 bytes are its hash.
	Snapshot func(io.Writer) error
}

// writer writes the entries of a backup.
type writer struct {
	tar     *tar.Writer
	entries []Entry
}

// encode writes a backup for recipients. Without recipients it is not encrypted.
func encode(to io.Writer, s Source, recipients []age.Recipient) error {
	if len(recipients) == 0 {
		return compress(to, s)
	}
	sealed, err := age.Encrypt(to, recipients...)
	if err != nil {
		return err
	}
	if err := compress(sealed, s); err != nil {
		return err
	}
	return sealed.Close()
}

func compress(to io.Writer, s Source) error {
	small, err := zstd.NewWriter(to, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return err
	}
	if err := archive(small, s); err != nil {
		return err
	}
	return small.Close()
}

func archive(to io.Writer, s Source) error {
	w := &writer{tar: tar.NewWriter(to)}
	for _, f := range s.Files {
		if err := w.add(filesPrefix+f.Path, int64(modeOf(f)), f.Data); err != nil {
			return err
		}
	}
	parts := &parts{w: w}
	if err := s.Snapshot(parts); err != nil {
		return fmt.Errorf("snapshot of etcd: %w", err)
	}
	if err := parts.flush(); err != nil {
		return err
	}
	manifest, err := json.MarshalIndent(Manifest{Format: format, Origin: s.Origin, Entries: w.entries}, "", "  ")
	if err != nil {
		return err
	}
	if err := w.add(manifestName, 0o600, manifest); err != nil {
		return err
	}
	return w.tar.Close()
}

func (w *writer) add(name string, mode int64, data []byte) error {
	h := &tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: int64(len(data)), Format: tar.FormatPAX}
	if err := w.tar.WriteHeader(h); err != nil {
		return err
	}
	w.entries = append(w.entries, entryOf(h, data))
	_, err := w.tar.Write(data)
	return err
}

func entryOf(h *tar.Header, data []byte) Entry {
	sum := sha256.Sum256(data)
	return Entry{Name: h.Name, Mode: h.FileInfo().Mode(), Size: h.Size, SHA256: hex.EncodeToString(sum[:])}
}

// parts writes etcd's snapshot as entries of partSize.
type parts struct {
	w     *writer
	count int
	part  []byte
}

func (p *parts) Write(data []byte) (int, error) {
	written := len(data)
	for len(p.part)+len(data) >= partSize {
		n := partSize - len(p.part)
		p.part, data = append(p.part, data[:n]...), data[n:]
		if err := p.flush(); err != nil {
			return 0, err
		}
	}
	p.part = append(p.part, data...)
	return written, nil
}

func (p *parts) flush() error {
	if len(p.part) == 0 {
		return nil
	}
	err := p.w.add(partName(p.count), 0o600, p.part)
	p.count, p.part = p.count+1, p.part[:0]
	return err
}

func partName(number int) string { return fmt.Sprintf("%s%06d", partsPrefix, number) }

func modeOf(f host.File) (mode uint32) {
	if f.Mode == 0 {
		return 0o600
	}
	return uint32(f.Mode.Perm())
}
