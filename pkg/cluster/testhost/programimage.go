package testhost

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/session"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
)

// programImage is an image of a cluster with this program, and with other files.
// Another content has another name.
type programImage struct {
	all, name string // beginning of the names of all such images; name of this one
	binary    string
	files     []docker.ImageFile
}

func newProgramImage(all, cluster, binary string, files []docker.ImageFile) (programImage, error) {
	sum, err := remote.Sum(binary)
	if err != nil {
		return programImage{}, err
	}
	for _, f := range files {
		next := sha256.Sum256(append([]byte(sum+f.Name), f.Data...))
		sum = hex.EncodeToString(next[:])
	}
	return programImage{all, all + cluster + "." + sum[:12], binary, files}, nil
}

// use creates the image, calls run, which replaces the container of an earlier
// image, and removes the earlier images of the cluster.
func (p programImage) use(ctx context.Context, s *session.Session, run func() error) error {
	has, err := s.Engine.Images().Has(ctx, p.name)
	if err == nil && !has {
		err = s.Cluster().ImportProgram(ctx, p.name, p.binary, p.files...)
	}
	if err != nil {
		return err
	}
	if err := run(); err != nil {
		return err
	}
	images, err := s.Cluster().Images(ctx)
	errs := []error{err}
	for _, image := range images {
		if strings.HasPrefix(image, p.all) && image != p.name {
			errs = append(errs, s.Engine.Images().Remove(ctx, image))
		}
	}
	return errors.Join(errs...)
}
