package controlplane

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/pki"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// SharedFiles lists the files that another control plane needs, without their
// content: the authorities, the service-account keys and the key that encrypts Secrets.
func SharedFiles() (all []host.File) {
	files := []string{accountKey, accountPublic, encryptionFile, crossFile}
	for _, a := range authorities {
		files = append(files, a.path+".key", a.path+".crt")
	}
	for _, file := range files {
		all = append(all, host.File{Path: file, Mode: modeOf(file)})
	}
	return all
}

// Shared reads the files that a further control plane needs from this one.
func Shared(files host.Files) ([]host.File, error) {
	all := SharedFiles()
	for i := range all {
		var err error
		if all[i].Data, err = files.Read(all[i].Path); err != nil {
			return nil, fmt.Errorf("read what control planes share: %w", err)
		}
	}
	return all, nil
}

// notReceived is the error for a file that a joining control plane has not received.
func notReceived(file string) error {
	return fmt.Errorf("%s was not received; run `kube-bootstrap master --join` with a fresh token and certificate "+
		"key: %w", file, fs.ErrNotExist)
}

// CheckShared returns an error if a shared file is missing in all, or is damaged.
func CheckShared(all []host.File) error {
	read := func(path string) ([]byte, error) {
		i := slices.IndexFunc(all, func(f host.File) bool { return f.Path == path })
		if i < 0 {
			return nil, fmt.Errorf("%s: %w", path, fs.ErrNotExist)
		}
		return all[i].Data, nil
	}
	return host.Each(SharedFiles(), func(f host.File) error {
		data, err := read(f.Path)
		if err != nil {
			return err
		}
		return checkShared(f.Path, data, read)
	})
}

func checkShared(path string, data []byte, read func(string) ([]byte, error)) error {
	var err error
	switch authority, isCertificate := strings.CutSuffix(path, ".crt"); {
	case path == encryptionFile:
		_, err = parseEncryption(data)
	case path == accountKey:
		_, err = pki.PublicKey(data)
	case isCertificate && path != crossFile:
		var key []byte
		if key, err = read(authority + ".key"); err == nil {
			_, err = pki.ParseAuthority(pki.Pair{Cert: data, Key: key})
		}
	}
	return step.Wrap(err, "%s", path)
}
