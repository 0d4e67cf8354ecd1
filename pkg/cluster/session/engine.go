package session

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// engineFile in PrivateDir records the engine of the cluster. The names of the local
// directories do not contain the engine, so a cluster of the same name on another
// engine would replace and remove the same files.
const engineFile = "engine.json"

// notedEngine is the content of engineFile. An engine may have several addresses, and the
// same address may lead to a new installation of the same engine.
type notedEngine struct {
	Address string `json:"address"`
	ID      string `json:"id"`
}

func (o Options) enginePath() string { return filepath.Join(o.PrivateDir(), engineFile) }

// NoteEngine records on this machine which engine the cluster is on.
func (s *Session) NoteEngine(ctx context.Context) error {
	facts, err := s.Engine.Facts(ctx)
	if err != nil {
		return s.NoAnswer(err)
	}
	data, err := json.Marshal(notedEngine{s.Engine.Address, facts.ID})
	if err == nil {
		_, err = s.WritePrivate(engineFile, data)
	}
	return err
}

// ForgetEngine removes the record of a cluster that was not created, unless
// this machine has other private files of the cluster.
func (o Options) ForgetEngine() error {
	found, err := os.ReadDir(o.PrivateDir())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(found) != 1 || found[0].Name() != engineFile {
		return err
	}
	return os.RemoveAll(o.PrivateDir())
}

// sameEngine returns a problem if the local files belong to a cluster on another
// engine. A cluster without a record may be on any engine.
func (s *Session) sameEngine(ctx context.Context) error {
	data, err := os.ReadFile(s.enginePath())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var noted notedEngine
	if err == nil {
		err = json.Unmarshal(data, &noted)
	}
	if err != nil {
		return fmt.Errorf("engine of cluster %s: %s: %w", s.Name, s.enginePath(), err)
	}
	if noted.Address == s.Engine.Address {
		return nil
	}
	facts, err := s.Engine.Facts(ctx)
	if err != nil {
		return s.NoAnswer(err)
	}
	if noted.ID != "" && noted.ID == facts.ID {
		return nil
	}
	return &step.Problem{
		Name: "cluster-engine", Text: fmt.Sprintf("this machine has files of cluster %s on the Docker engine %s, and the selected engine is %s", s.Name, noted.Address, s.Engine.Address),
		Remedy: "select that engine with --docker-host, or give the cluster on this engine another --name; if that engine no longer exists, remove " + s.enginePath(), Firm: true,
	}
}
