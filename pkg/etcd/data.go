package etcd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/catalog"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
)

const (
	// DataDir is the data directory of etcd on a host.
	DataDir = host.StateDir + "/etcd"
	// startedFile contains the newest version of etcd that has used the data. It is
	// written before that etcd starts, because an older one cannot read the data then.
	startedFile = host.StateDir + "/etcd-version"
	// joinedFile contains the --initial-cluster of this member once it has been added.
	joinedFile = host.StateDir + "/etcd-cluster"
	// CopyDir contains a copy of the data, see Forced.
	CopyDir    = DataDir + copySuffix
	copySuffix = "-copy"
	// NewDir contains data that a restore or a recovery makes.
	NewDir = DataDir + "-restored"
	// CompleteDir contains complete data that Replace takes.
	CompleteDir = DataDir + "-recovered"
	// FormerDir contains the data before Replace.
	FormerDir = DataDir + "-before"
	// LeftFile exists from the moment this host has left the cluster until it joins again:
	// the other members do not answer it any more.
	LeftFile = host.StateDir + "/etcd-left"
)

var (
	startedForm = regexp.MustCompile(`^[0-9]+\.[0-9]+\.[0-9A-Za-z.-]+$`)
	// clusterForm is the format of etcd's --initial-cluster.
	clusterForm = regexp.MustCompile(`^[^=,\s]+=https://[^=,\s]+(,[^=,\s]+=https://[^=,\s]+)*$`)
)

// Data are the data of the member of this host, and the records about them.
type Data struct{ Files host.Files }

// DataOf returns the data of the etcd of a host.
func DataOf(files host.Files) Data { return Data{files} }

// Exist reports whether a member has run on this host.
func (d Data) Exist() bool { return d.Files.Exists(DataDir + "/member") }

// hasWAL reports whether this host has a write-ahead log, with which etcd continues.
// Without it, etcd starts as a new member. A failed start may leave other files.
// https://github.com/etcd-io/etcd/blob/v3.7.3/server/etcdserver/bootstrap.go#L302-L309
func (d Data) hasWAL() bool { return len(d.Files.Match(DataDir+"/member/wal/*.wal")) > 0 }

// Started returns the newest version of etcd that has used the data, or "".
func (d Data) Started() (string, error) { return d.record(startedFile, startedForm) }

// noteStart records the version of an etcd before it starts.
func (d Data) noteStart(version string) error {
	newest, err := d.Started()
	if err != nil || newest == version || newest != "" && catalog.CheckEtcdChange(newest, version) != nil {
		return err
	}
	return d.Files.Write(startedFile, []byte(version+"\n"), 0o600)
}

// cluster returns the --initial-cluster of this member, or "" if it has not joined.
func (d Data) cluster() (string, error) { return d.record(joinedFile, clusterForm) }

func (d Data) noteCluster(cluster string) error {
	return d.Files.Write(joinedFile, []byte(cluster+"\n"), 0o600)
}

// record returns the content of a file, or "" if the file is missing or
// damaged: the next start writes it again.
func (d Data) record(path string, form *regexp.Regexp) (string, error) {
	data, err := d.Files.Read(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	text := strings.TrimSpace(string(data))
	if !form.MatchString(text) {
		text = ""
	}
	return text, err
}

// Replace replaces the data of this member, which becomes the only one, by those in CompleteDir. It keeps the others
// in FormerDir. After an interruption, it continues.
func (m Member) Replace() error {
	files := m.Data.Files
	if !files.Exists(FormerDir) {
		if err := os.Rename(files.Path(DataDir), files.Path(FormerDir)); err != nil {
			return err
		}
	}
	if files.Exists(joinedFile) {
		if err := m.Data.noteCluster(m.alone()); err != nil {
			return err
		}
	}
	return os.Rename(files.Path(CompleteDir), files.Path(DataDir))
}

// remove removes the data and the records of the member of this host. joinedFile
// goes first: with it, etcd would start with a part of its data after an interrupt.
func (d Data) remove() error {
	if err := d.Files.Remove(joinedFile); err != nil {
		return err
	}
	for _, dir := range []string{CopyDir, NewDir, CompleteDir, FormerDir} {
		if err := d.Files.RemoveAll(dir); err != nil {
			return err
		}
	}
	return errors.Join(d.Files.RemoveAll(DataDir), d.Files.Remove(startedFile))
}

// diskIsFull reports whether etcd has no space for the copy of the WAL that it makes
// before it repairs the WAL. On a full disk the last entry is torn.
func (d Data) diskIsFull() bool {
	const wal = 64 << 20 // bytes; the size of a file of the WAL
	free, err := filesystem.FreeBytes(d.Files, DataDir)
	return err == nil && free < wal
}

func (d Data) diskRemedy() string {
	free, err := filesystem.FreeBytes(d.Files, DataDir)
	if err != nil {
		return "free space below " + DataDir
	}
	return fmt.Sprintf("free space on the file system of %s, which has %d MiB left, and run the same command again",
		DataDir, free>>20)
}
