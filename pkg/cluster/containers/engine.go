package containers

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

// engineFile in session.Options.PrivateDir records the engine of the cluster. The names of the local
// directories do not contain the engine, so a cluster of the same name on another
// engine would replace and remove the same files.
const engineFile = "engine.json"

// notedEngine is the content of engineFile. An engine may have several addresses, and the
// same address may lead to a new installation of the same engine.
type notedEngine struct {
	Address string `json:"address"`
	ID      string `json:"id"`
}

// NoteEngine records on this machine which engine the cluster is on.
func (c Cluster) NoteEngine(ctx context.Context) error {
	facts, err := c.Engine.Facts(ctx)
	if err != nil {
		return c.Session.Provider.NoAnswer(err)
	}
	data, err := json.Marshal(notedEngine{c.Engine.Address, facts.ID})
	if err == nil {
		_, err = c.Session.WritePrivate(engineFile, data)
	}
	return err
}

// ForgetEngine removes the record of a cluster that was not created, unless
// this machine has other private files of the cluster.
func (c Cluster) ForgetEngine() error {
	dir := c.Session.PrivateDir()
	found, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil || len(found) != 1 || found[0].Name() != engineFile {
		return err
	}
	return os.RemoveAll(dir)
}

// Owns returns a problem if the local files belong to a cluster on another
// engine. A cluster without a record may be on any engine.
func (p DockerProvider) Owns(ctx context.Context, cluster, dir string) error {
	path := filepath.Join(dir, engineFile)
	noted, err := readEngine(path)
	if err != nil {
		return fmt.Errorf("engine of cluster %s: %s: %w", cluster, path, err)
	}
	if noted == nil || noted.Address == p.Engine.Address {
		return nil
	}
	facts, err := p.Engine.Facts(ctx)
	if err != nil {
		return p.NoAnswer(err)
	}
	if noted.ID != "" && noted.ID == facts.ID {
		return nil
	}
	return &step.Problem{
		Name: "cluster-engine",
		Text: fmt.Sprintf("this machine has files of cluster %s on the Docker engine %s, and the selected "+
			"engine is %s", cluster, noted.Address, p.Engine.Address),
		Remedy: "select that engine with --docker-host, or give the cluster on this engine another --name; if that " +
			"engine no longer exists, remove " + path, Firm: true,
	}
}

// readEngine returns nil if there is no record.
func readEngine(path string) (*notedEngine, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var noted notedEngine
	return &noted, json.Unmarshal(data, &noted)
}
