//go:build root

package machines_test

import (
	"testing"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/containers/machines"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/docker/dockertest"
	"github.com/kube-bootstrap/kube-bootstrap/test/must"
)

func TestPreparedDisks(t *testing.T) {
	engine, _ := dockertest.Start(t)
	ctx, disks := t.Context(), machines.Of(engine, "one").Disks
	found := func(key, want string) {
		t.Helper()
		if disk, err := disks.Find(ctx, key); err != nil || disk != want {
			t.Errorf("the disk with the key %s is %q (%v), want %q", key, disk, err, want)
		}
	}
	begin := func(cluster string) string {
		t.Helper()
		disk, err := machines.Of(engine, cluster).Disks.Begin(ctx)
		must.NoError(t, err)
		return disk
	}
	one, two := begin("one"), begin("two")
	found("a", "")
	must.NoError(t, disks.End(ctx, one, "a"))
	found("a", one)
	if again := begin("two"); again != two {
		t.Errorf("the second disk of a killed run is %q, want %q", again, two)
	}
	for _, cluster := range []string{"one", "two"} {
		must.NoError(t, machines.Of(engine, cluster).Disks.RemoveOfCluster(ctx, "other key"))
	}
	found("a", one)
	use(t, engine, one)
	if disk := begin("one"); disk != "" {
		t.Errorf("disk %s, which is in use, is made again", disk)
	}
	must.NoError(t, disks.End(ctx, begin("two"), "b"))
	found("a", "")
	found("b", two)
	must.NoError(t, disks.Remove(ctx))
	found("b", "")
	must.NoError(t, engine.Remove(ctx, "user"))
	must.NoError(t, disks.Remove(ctx))
	if one := begin("one"); one == "" {
		t.Error("a disk that nothing uses was not removed")
	}
	must.NoError(t, disks.End(ctx, one, "c"))
	must.NoError(t, disks.RemoveOfCluster(ctx, "c"))
	found("c", "")
}

// use creates a container that has the volume.
func use(t *testing.T, engine *docker.Engine, volume string) {
	t.Helper()
	c := dockertest.Sleeper(t, engine, "user")
	c.Mounts = append(c.Mounts, docker.Mount{Source: volume, Target: "/disk", Volume: true})
	must.NoError(t, engine.Run(t.Context(), c))
}
