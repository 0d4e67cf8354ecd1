package thishost

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/source"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/node"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func restoreCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "restore FILE",
		Short: "Make this host the control plane of the cluster in a backup",
		Long: `Make this host the control plane of the cluster in a backup. The host must not be
part of a cluster. The backup is read to its end and all checks of "kube-bootstrap
master" run before anything is changed.

If this host has the address of the control plane in the backup, it takes the name
and the address of that control plane, and the workers come back by themselves.
Otherwise it has its own name and address, or those of --host-name and
--ip-address, and this command prints what to run on each worker. It also names
the nodes that do not report, and how to remove them.

The cluster then has one control plane. "kube-bootstrap token create
--control-plane" prints the command that adds another one.`,
		Example: `  kube-bootstrap restore cp.backup --identity backup.key
  kube-bootstrap restore cp.backup --identity backup.key --ip-address 192.168.1.20`,
	}
	source.AddFlags(c.Flags(), config.Restore)
	con.AddRecords(c.Flags())
	identity := c.Flags().String("identity", "", "file with the private key of a recipient of the backup")
	c.RunE = func(c *cobra.Command, args []string) error {
		release, err := Lock(c.Context())
		if err != nil {
			return err
		}
		defer release()
		return restore(c, con, args[0], *identity)
	}
	return c
}

// Lock keeps other runs out on this host, whose root this process must be of.
func Lock(ctx context.Context) (release func(), err error) {
	if err := AsRoot(); err != nil {
		return nil, err
	}
	return host.Lock(ctx, lockPath)
}

func restore(c *cobra.Command, con *console.Console, path, identity string) error {
	given, origins, err := settings.Load(con.Env, c.Flags(), config.Restore, "")
	if err != nil {
		return err
	}
	identities, err := backup.Identities(identity)
	if err != nil {
		return exit.Usage(fmt.Errorf("--identity: %w", err))
	}
	snapshot, err := host.UnnamedFile("/var/lib") // where etcd has its data
	if err != nil {
		return err
	}
	defer snapshot.Close()
	b, err := recovery.Open(path, identities, snapshot)
	if err != nil {
		return exit.Firm(err)
	}
	h, err := openRestored(b, given, origins)
	if err != nil {
		return exit.Firm(err)
	}
	runner, h, err := checkFirst(c, con, h, config.RoleControlPlane)
	if err != nil {
		return err
	}
	restored := hostVerb{
		role: config.RoleControlPlane, next: "`kube-bootstrap kubectl get nodes` lists its nodes",
		plan: func(h *local.Host) step.Plan { return plan.Restore(h, b, snapshot) },
	}
	if err := walk(c.Context(), con, runner, restored, h); err != nil {
		return err
	}
	return tellNodes(c.Context(), con, h, b)
}

// openRestored returns this host with the settings of a backup, or the problem that it is not bare [role].
func openRestored(b *recovery.Backup, given config.Config, origins config.Origins) (*local.Host, error) {
	files := host.Files{}
	saved, err := local.ReadSaved(files)
	if err != nil {
		return nil, err
	}
	if saved.Installed() && !b.Continues(files) {
		return nil, &step.Problem{
			Name: "role", Firm: true, Text: "this host is already a " + saved.Role,
			Remedy: "run `kube-bootstrap turndown` first; a backup is restored on a host without a cluster",
		}
	}
	h, err := local.OpenRestored(b.Settings, given, origins)
	if err != nil {
		return nil, err
	}
	return h, b.PlaceProblem(h)
}

// silenceLimit is the time in which the kubelet of a running host renews its lease after its API server was away.
const silenceLimit = time.Minute

// tellNodes names the hosts that do not come back by themselves.
func tellNodes(ctx context.Context, con *console.Console, h *local.Host, b *recovery.Backup) error {
	limit, cancel := step.Limited(step.WithLimit(ctx, silenceLimit))
	defer cancel()
	con.Say("waiting for the other nodes")
	silent, err := node.Silent(limit, kube.Kubeconfig(controlplane.AdminConf))
	if err != nil || len(silent) == 0 {
		return err
	}
	if moved := workersOf(b, silent); b.Manifest.Address != h.IP() && len(moved) > 0 {
		con.Warn(fmt.Sprintf("the control plane has another address; run `kube-bootstrap worker --master-ip %s` on %s",
			h.IP(), strings.Join(moved, ", ")))
	}
	for _, name := range silent {
		con.Warn(fmt.Sprintf("node %[1]s does not report; if it is gone for good, run `kube-bootstrap forget %[1]s`",
			name))
	}
	return nil
}

func workersOf(b *recovery.Backup, names []string) (workers []string) {
	for _, o := range b.Manifest.Hosts {
		if !o.ControlPlane && slices.Contains(names, o.Name) {
			workers = append(workers, o.Name)
		}
	}
	return workers
}
