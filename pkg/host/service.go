package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"time"
)

const tailLimit = 2 * time.Second // for the log of a container that has failed

// Service is a container of ours that a step keeps running.
type Service struct {
	Docker    func() (*Docker, error) // the engine that runs it
	Name      string
	Container func() (Container, error) // of that name, as it shall run
}

// Diff lists what Run would do, as [Docker.Running] does.
func (s Service) Diff(ctx context.Context) ([]string, error) {
	docker, err := s.Docker()
	if err != nil {
		return nil, err
	}
	c, err := s.Container()
	if err != nil {
		return nil, err
	}
	return docker.Running(ctx, c)
}

// Run makes the container run as described, as [Docker.Run] does.
func (s Service) Run(ctx context.Context) error {
	docker, err := s.Docker()
	if err != nil {
		return err
	}
	c, err := s.Container()
	if err != nil {
		return err
	}
	return docker.Run(ctx, c)
}

// Remove stops and removes the container, as [Docker.Remove] does.
func (s Service) Remove(ctx context.Context) error {
	docker, err := s.Docker()
	if err != nil {
		return err
	}
	return docker.Remove(ctx, s.Name)
}

// StartedAt returns when the container was started last, as [Docker.StartedAt]
// does.
func (s Service) StartedAt(ctx context.Context) (at time.Time, ok bool, err error) {
	docker, err := s.Docker()
	if err != nil {
		return at, false, err
	}
	return docker.StartedAt(ctx, s.Name)
}

// Tail returns the last lines that the container wrote, for an error that
// explains. The context may have ended.
func (s Service) Tail(ctx context.Context, lines int) string {
	docker, err := s.Docker()
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tailLimit)
	defer cancel()
	return docker.Tail(ctx, s.Name, lines)
}

// Fingerprint tells one content of files from another: a service that reads
// them only when it starts has it in its environment, so that other content
// replaces the container. Files that are not there do not count.
func (f Files) Fingerprint(paths ...string) (string, error) {
	sum := sha256.New()
	for _, path := range paths {
		data, err := f.Read(path)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		sum.Write(data)
	}
	return hex.EncodeToString(sum.Sum(nil)[:8]), nil
}
