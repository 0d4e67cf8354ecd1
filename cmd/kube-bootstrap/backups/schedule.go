package backups

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/console"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/backup/schedule"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/recovery"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// defaultKeep backups cover a week of a backup every 12 hours.
const defaultKeep = 14

// scheduleFlags are the flags of `backup schedule`.
type scheduleFlags struct {
	every       time.Duration
	keep        int
	to          string
	off, resume bool
	recipients  recipients
	bucket      bucketFlags
}

func scheduleCommand(con *console.Console) *cobra.Command {
	c := &cobra.Command{
		Use:   "schedule",
		Short: "Have the control planes make backups, or show their schedule",
		Long: `Have the agents of the control planes make backups of the cluster. One control
plane at a time makes each backup; if it dies, another one makes it. Each backup
is encrypted for each --recipient, and is read again before it counts. Then the
oldest good backups beyond --keep are removed. "kube-bootstrap status" shows the
last good backup and what has failed. Without flags, show the schedule.

--to is a directory of each control plane, or s3://BUCKET/PREFIX. The credentials
of a bucket are in a file as those of AWS, which only you can read, or come from
stdin ("-"). The cluster keeps the schedule with these credentials in the Secret
kube-system/kube-bootstrap-backups. --off removes it and keeps the backups.

A restored cluster makes no backups before --resume, because it may be a copy.`,
		Example: `  kube-bootstrap backup schedule --every 12h --to /mnt/backups --recipient age1...
  kube-bootstrap backup schedule --every 6h --keep 28 --to s3://backups/lab \
    --s3-endpoint https://s3.example.com --s3-credentials s3.ini --recipient age1...
  kube-bootstrap backup schedule -o json`,
	}
	f := addScheduleFlags(c)
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		h, err := thishost.OpenControlPlane()
		if err != nil {
			return err
		}
		store := schedule.Store{API: kube.Kubeconfig(controlplane.AdminConf)}
		if err := f.change(c, con, h, store); err != nil {
			return err
		}
		return show(c.Context(), con, *format, h, store)
	}
	return c
}

func addScheduleFlags(c *cobra.Command) *scheduleFlags {
	f := &scheduleFlags{recipients: addRecipients(c), bucket: addBucket(c)}
	c.Flags().DurationVar(&f.every, "every", 0, "time between two backups, such as 12h")
	c.Flags().IntVar(&f.keep, "keep", defaultKeep, "number of good backups that are kept")
	c.Flags().StringVar(&f.to, "to", "", "directory of each control plane, or s3://BUCKET/PREFIX")
	c.Flags().BoolVar(&f.off, "off", false, "make no more backups; existing backups stay")
	c.Flags().BoolVar(&f.resume, "resume", false, "continue the schedule in this restored cluster")
	return f
}

// settingFlags are the flags that make a new schedule. It replaces the one before as a whole.
var settingFlags = []string{
	"every", "keep", "to", "recipient", "plain", "s3-endpoint", "s3-region", "s3-credentials",
}

// change changes the schedule as the flags state.
func (f *scheduleFlags) change(c *cobra.Command, con *console.Console, h *local.Host, store schedule.Store) error {
	switch {
	case f.off && (f.every > 0 || f.resume), f.resume && f.every > 0:
		return exit.Usage(errors.New("--off, --resume and --every: give only one of them"))
	case f.off:
		return store.Remove(c.Context())
	case f.resume:
		return resume(c.Context(), h, store)
	case !slices.ContainsFunc(settingFlags, c.Flags().Changed):
		return nil
	}
	s, err := f.schedule(con)
	if err != nil {
		return exit.Usage(err)
	}
	if err := reach(c.Context(), s); err != nil {
		return err
	}
	warnPlain(con, s.To, len(s.Recipients) == 0)
	return write(c.Context(), h, store, s)
}

// schedule returns the schedule of the flags.
func (f *scheduleFlags) schedule(con *console.Console) (s schedule.Schedule, err error) {
	keys, err := f.recipients.keys()
	if err != nil {
		return s, err
	}
	access, err := f.bucket.access(con.In, f.to)
	if err != nil {
		return s, err
	}
	s = schedule.Schedule{
		Every: metav1.Duration{Duration: f.every}, Keep: f.keep, To: f.to, Recipients: keys, S3: access,
	}
	return s, s.Validate()
}

// reach returns the problem that a bucket cannot be listed. The directories of other control planes cannot be seen.
func reach(ctx context.Context, s schedule.Schedule) error {
	if !backup.InBucket(s.To) {
		return nil
	}
	place, err := s.Place()
	if err != nil {
		return exit.Usage(err)
	}
	limit, cancel := step.Checking(ctx)
	defer cancel()
	if _, err := place.List(limit); err != nil {
		return schedule.ProblemOf(err, s.To)
	}
	return nil
}

func resume(ctx context.Context, h *local.Host, store schedule.Store) error {
	found, err := store.Read(ctx)
	if err != nil {
		return err
	}
	if found == nil {
		return exit.Usage(errors.New("--resume: the cluster has no schedule of backups"))
	}
	return write(ctx, h, store, *found)
}

// write writes a schedule that begins now, for this cluster.
func write(ctx context.Context, h *local.Host, store schedule.Store, s schedule.Schedule) error {
	id, err := recovery.ClusterID(ctx, h)
	if err != nil {
		return err
	}
	s.Cluster, s.Since = id, time.Now().UTC().Truncate(time.Second)
	return store.Write(ctx, s)
}

func show(
	ctx context.Context, con *console.Console, format output.Format, h *local.Host, store schedule.Store,
) error {
	status, err := recovery.StatusOf(ctx, h, store)
	if err != nil {
		return err
	}
	if status == nil {
		con.Say("the cluster has no schedule of backups; --every, --to and --recipient make one")
		return nil
	}
	return format.Print(con.Out, "BackupSchedule", status, func(w io.Writer) { printSchedule(w, *status) })
}

func printSchedule(w io.Writer, s recovery.BackupStatus) {
	sealed := strings.Join(s.Schedule.Recipients, ", ")
	if sealed == "" {
		sealed = "nobody: the backups are not encrypted"
	}
	output.Fields(w, [][2]string{
		{"every", s.Schedule.Every.Duration.String()}, {"keep", fmt.Sprint(s.Schedule.Keep)},
		{"to", s.Schedule.To}, {"encrypted for", sealed}, {"last good backup", s.String()},
		{"next", s.Next.UTC().Format(time.DateTime) + " UTC"},
	})
	for _, p := range s.Problems {
		fmt.Fprintln(w, p)
	}
}
