// Package recovery makes backups of a cluster on a control plane, and makes a bare host the control plane of the
// cluster in a backup. pkg/backup is the format of the file.
package recovery

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"time"

	"filippo.io/age"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/etcd/snapshot"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/parts"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Create writes a backup of the cluster of this control plane for recipients to a new file.
func Create(ctx context.Context, h *local.Host, program, path string, recipients []age.Recipient) error {
	files, err := readFiles(ctx, h)
	if err != nil {
		return err
	}
	ctx, cancel := step.Limited(h.Limited(ctx))
	defer cancel()
	own := parts.InForce(h).Etcd
	return own.Client.Do(ctx, func(client *clientv3.Client) error {
		source, err := sourceOf(ctx, h, client, program, files)
		if err != nil {
			return err
		}
		return backup.Write(path, source, recipients)
	})
}

// readFiles returns the files of a backup, unless the hosts have different keys now.
func readFiles(ctx context.Context, h *local.Host) ([]host.File, error) {
	if err := notRotating(ctx); err != nil {
		return nil, err
	}
	return files(h)
}

func sourceOf(
	ctx context.Context, h *local.Host, client *clientv3.Client, program string, files []host.File,
) (backup.Source, error) {
	origin, err := originOf(ctx, h, parts.InForce(h).Etcd, client, program)
	save := func(to io.Writer) error { return snapshot.Save(ctx, client, to) }
	return backup.Source{Origin: origin, Files: files, Snapshot: save}, err
}

// notRotating returns a problem if the keys of the hosts differ now. A backup is possible without an API server.
func notRotating(ctx context.Context) error {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	problems := step.Problems(renewal.NotRotating(ctx))
	if len(problems) == 0 {
		return nil
	}
	return problems[0]
}

func originOf(
	ctx context.Context, h *local.Host, own parts.Etcd, client *clientv3.Client, program string,
) (o backup.Origin, err error) {
	authority, err := h.Files.Read(join.ClusterCAFile)
	if err != nil {
		return o, err
	}
	hash, err := join.CAHashOf(authority)
	if err != nil {
		return o, err
	}
	known, err := membership.KnownHosts(ctx, own.Client)
	if err != nil {
		return o, err
	}
	status, err := client.Status(ctx, own.Client.URL())
	if err != nil {
		return o, err
	}
	o = backup.Origin{
		Created: time.Now().UTC().Truncate(time.Second), Cluster: hash, Host: h.Config.HostName, Address: h.IP(),
		Program: program, Kubernetes: h.Versions.Kubernetes, Etcd: status.Version,
	}
	return withHosts(o, known), nil
}

// withHosts adds the hosts of the cluster. A control plane has a lease too.
func withHosts(o backup.Origin, known []join.ClusterHost) backup.Origin {
	seen := map[string]bool{}
	for _, k := range known { // control planes first
		if !seen[k.Name] {
			o.Hosts = append(o.Hosts, backup.Host{Name: k.Name, Address: k.IP.String(), ControlPlane: k.ControlPlane})
		}
		seen[k.Name] = true
	}
	return o
}

// files returns the files of this host that belong to a backup.
func files(h *local.Host) ([]host.File, error) {
	all, err := controlplane.Shared(h.Files)
	if err != nil {
		return nil, err
	}
	key, err := local.RequiredKey(h)
	if err != nil {
		return nil, err
	}
	if key != nil {
		all = append(all, host.File{Path: local.VerifyKeyFile, Data: key, Mode: 0o644})
	}
	for _, path := range furtherFiles(h.Files) {
		data, err := h.Files.Read(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, host.File{Path: path, Data: data})
	}
	return all, nil
}

// furtherFiles lists the files of a control plane that others do not share. A host may lack some.
func furtherFiles(files host.Files) []string {
	return append(files.Match(parts.AddonsDir+"/*.yaml"),
		parts.NetworkFile, controlplane.LeafLifeFile, config.SavedPath, registry.SavedPath)
}
