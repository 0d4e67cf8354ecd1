package thishost

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/settings"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/preflight"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

func masterCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "master",
		Short: "Make this host the control plane of a cluster, or a further one with --join",
		Long: `Make this host the control plane of a cluster: a second Docker for etcd and
flannel, the main Docker on flannel's network, and a kubelet that runs
Kubernetes. With --join it becomes a further control plane of the cluster of
--master-ip. "kube-bootstrap token create --control-plane" on that host prints the
command to run here. Images that this host lacks come from --bundle, --registry,
a bundle of the cache, or the official registries. A second run repairs missing
or changed parts and leaves the rest unchanged.

With --recover, a control plane continues without the others, which must be lost
for good: etcd has no quorum without them. It has all data that it has received.
It is refused while etcd has a quorum. On a single control plane whose etcd does
not start because its data are damaged, it continues with what can be read.`,
		Example: `  kube-bootstrap master
  kube-bootstrap master --bundle kube-amd64.tar.zst    # without a network
  kube-bootstrap master --dry-run                      # every change, none made
  kube-bootstrap master --join --master-ip 192.168.1.10 --token-file token --ca-cert-hash sha256:...
  kube-bootstrap master --recover                      # the other control planes are lost`,
	}
	return addHostVerb(con, c, hostVerb{
		role: config.RoleControlPlane, verb: config.Master, plan: plan.ControlPlane, change: addRecovery(con, c),
		next: "`kube-bootstrap kubectl get nodes` lists its nodes; `kube-bootstrap token create` prints what to run " +
			"on the next host",
	})
}

func workerCommand(con *console.Console) *cobra.Command {
	return addHostVerb(con, &cobra.Command{
		Use:   "worker",
		Short: "Make this host a worker of a cluster",
		Long: `Make this host a worker of the cluster whose control plane is at --master-ip.
"kube-bootstrap token create" there prints the command to run here. A second run
repairs missing or changed parts and leaves the rest unchanged.`,
		Example: `  kube-bootstrap worker --master-ip 192.168.1.10 --token-file token --ca-cert-hash sha256:...
  MASTER_IP=192.168.1.10 TOKEN=... kube-bootstrap worker --ca-cert-hash sha256:...`,
	}, hostVerb{
		role: config.RoleWorker, verb: config.Worker, plan: plan.Worker,
		next: "`kube-bootstrap status` shows what runs here; `kube-bootstrap turndown` restores the host",
	})
}

const lockPath = "/run/kube-bootstrap.lock"

const resumeAdvice = "run the same command again to finish, or `kube-bootstrap turndown` to take it back"

// hostVerb is master or worker: both walk a plan, they differ in which.
type hostVerb struct {
	role string
	verb config.Verb
	plan func(*local.Host) step.Plan
	next string // what the user may do afterwards
	// change returns the verb that the flags of a run request, nil: always the same.
	change func(context.Context, hostVerb, *local.Host) (hostVerb, error)
}

func addHostVerb(con *console.Console, c *cobra.Command, v hostVerb) *cobra.Command {
	settings.AddFlags(c, v.verb)
	con.AddRecords(c.Flags())
	dryRun, format := AddDryRun(c, "list every change and make none")
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, origins, err := settings.Load(con.Env, c.Flags(), v.verb, v.role)
		if err != nil {
			return err
		}
		h, release, err := openHost(c.Context(), cfg, origins, v.role)
		if err != nil {
			return err
		}
		defer release()
		v := v
		if v.change != nil {
			if v, err = v.change(c.Context(), v, h); err != nil {
				return err
			}
		}
		printSettings(con, h, origins, v.verb)
		runner, h, err := checkFirst(c, con, h, v.role)
		if err != nil {
			return err
		}
		if *dryRun {
			return PrintChanges(c.Context(), con, *format, v.plan(h))
		}
		return walk(c.Context(), con, runner, v, h)
	}
	return c
}

// AddDryRun adds --dry-run, and -o for what it prints.
func AddDryRun(c *cobra.Command, usage string) (*bool, *output.Format) {
	dryRun, format := c.Flags().Bool("dry-run", false, usage), output.AddFlag(c)
	c.Flags().Lookup("output").Usage = "how --dry-run prints: " + output.Words
	return dryRun, format
}

// openHost takes the lock and inspects this machine, in the order in which a user can
// solve problems.
func openHost(ctx context.Context, cfg config.Config, given config.Origins, role string) (*local.Host, func(), error) {
	saved, err := savedSettings()
	if err != nil {
		return nil, nil, err
	}
	if saved.Role != role && (role == config.RoleWorker || cfg.Join) {
		if errs := cfg.ValidateJoin(role); len(errs) > 0 {
			return nil, nil, exit.Usage(errs.ToAggregate())
		}
	}
	release, err := host.Lock(ctx, lockPath)
	if err != nil {
		return nil, nil, err
	}
	h, err := local.OpenWith(cfg, given)
	if err != nil {
		release()
		return nil, nil, err
	}
	return h, release, nil
}

// OpenInstalled takes the lock and opens a host of a cluster with its settings in force.
func OpenInstalled(ctx context.Context) (*local.Host, func(), error) {
	saved, err := savedSettings()
	switch {
	case err != nil:
		return nil, nil, err
	case saved.Lost != nil:
		return nil, nil, saved.Lost
	case !saved.Installed():
		return nil, nil, &step.Problem{Name: "role", Firm: true, Text: "this host is not part of a cluster",
			Remedy: "run this on a host where `kube-bootstrap master` or `kube-bootstrap worker` has run"}
	}
	release, err := host.Lock(ctx, lockPath)
	if err != nil {
		return nil, nil, err
	}
	h, err := local.Open(saved.Config)
	if err == nil {
		err = h.UpgradeLost
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return h, release, nil
}

// savedSettings returns the role and the settings of this host, which only root may read.
func savedSettings() (local.Saved, error) {
	if err := AsRoot(); err != nil {
		return local.Saved{}, err
	}
	return local.ReadSaved(host.Files{})
}

// AsRoot returns the problem that this process is not of root.
func AsRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return &step.Problem{
		Name: "root", Text: "this works on the host itself and you are not root", Remedy: "run it with sudo",
	}
}

// checkFirst resolves the host and runs its preflight checks, shown as one step.
func checkFirst(c *cobra.Command, con *console.Console, h *local.Host, role string) (*step.Runner, *local.Host, error) {
	runner, err := con.BeginLogged(c.Name())
	if err != nil {
		return nil, nil, err
	}
	e := step.Event{At: time.Now(), Stage: -1, ID: "preflight", Step: "preflight", Kind: step.Started}
	runner.Emit(e)
	h = h.Resolve(runner.Reporting(c.Context(), e), role)
	e.Err = (&step.Runner{}).Do(c.Context(), preflight.Plan(h, role))
	e.At, e.Kind = time.Now(), step.Done
	if e.Err != nil {
		e.Kind = step.Failed
	}
	runner.Emit(e)
	for _, a := range h.Answers {
		if a.Note != "" && e.Err == nil {
			runner.Emit(step.Event{
				At: time.Now(), Stage: e.Stage, ID: e.ID, Step: e.Step, Kind: step.Note, Message: a.Note,
			})
		}
	}
	return runner, h, exit.OnlyProblems(e.Err)
}

func walk(ctx context.Context, con *console.Console, runner *step.Runner, v hostVerb, h *local.Host) error {
	started := time.Now()
	// The agent must not repair with the settings from before.
	if h.Changing() || h.Recovering || h.Saved.Role != v.role {
		if err := h.Suspend(); err != nil {
			return err
		}
	}
	todo := v.plan(h)
	if !local.Complete(h.Files) || !runner.UpToDate(ctx, todo) {
		if err := runner.Do(ctx, todo); err != nil {
			con.End()
			warnAll(con, "", runner.Left())
			return exit.Resume(err, v.advice(h))
		}
	}
	con.Done(started, "this host is a "+nameOf(v.role)+" of the cluster")
	warnAll(con, "", runner.Left())
	con.Say(v.next)
	return nil
}

// advice returns the next step after a failure, which has not saved new settings.
func (v hostVerb) advice(h *local.Host) string {
	if !h.Changing() || h.Upgrading() {
		return resumeAdvice
	}
	return "the settings from before stay in force: run the same command again to finish, or `kube-bootstrap " +
		v.role + "` to go back to them"
}

// printSettings prints the versions, and the settings that differ from the default, in the format of
// the previous scripts.
func printSettings(con *console.Console, h *local.Host, origins config.Origins, verb config.Verb) {
	if con.Mode() != "plain" {
		return
	}
	versions := map[string]string{
		"kubernetesVersion": h.Versions.Kubernetes, "etcdVersion": "v" + h.Versions.Etcd,
		"flannelVersion": "v" + h.Versions.Flannel,
	}
	for _, v := range file.Values(h.Config, verb, origins) {
		v.Value = cmp.Or(v.Value, versions[v.Field])
		setting, _ := config.Find(v.Field)
		if v.Value != "" && (versions[v.Field] != "" || v.Value != setting.Default) {
			con.Say(fmt.Sprintf("%s is set to: %s", v.Env, v.Value))
		}
	}
}
