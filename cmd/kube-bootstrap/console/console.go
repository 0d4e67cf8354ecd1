// Package console is the environment of one run of the program: where it reads
// and writes, and how it shows progress.
package console

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Console is where the program reads and writes: Out is data, Err is progress and errors.
type Console struct {
	In       io.Reader
	Out, Err io.Writer
	Env      func(string) string
	Redraws  bool // Err is a terminal whose lines can be redrawn
	Asks     bool // In and Err are a terminal on which a question can be answered
	Version  string

	mode     string // of progress
	quiet    bool   // print only data, warnings and errors
	verbose  bool   // print every step and message
	timeline string // file for the times of the steps; empty: none
	logFile  string // of --log-file; empty: in host.LogDir, if the command keeps a log
	keptLog  string // path of the log in host.LogDir, once it exists
	report   progress.Reporter
}

// Open returns the console of this process.
func Open() *Console {
	return &Console{
		In:      os.Stdin,
		Out:     stdout{os.Stdout},
		Err:     os.Stderr,
		Env:     os.Getenv,
		Redraws: progress.Redraws(os.Stderr, os.Getenv),
		Asks:    asks(os.Stdin, os.Stderr, os.Getenv),
	}
}

// stdout distinguishes a closed pipe from other broken connections.
type stdout struct{ file *os.File }

func (o stdout) Write(p []byte) (int, error) {
	n, err := o.file.Write(p)
	if errors.Is(err, syscall.EPIPE) {
		err = exit.ErrNotRead
	}
	return n, err
}

// Width is the width of the terminal that help is printed on, within what can be read well.
func (con *Console) Width() int {
	out, _ := con.Out.(stdout)
	width, _ := progress.SizeOf(out.file)()
	return min(max(width, 40), 120)
}

// Replaces reports whether Out is a terminal on which text can be replaced.
func (con *Console) Replaces() bool {
	out, ok := con.Out.(stdout)
	return ok && progress.Redraws(out.file, con.Env)
}

// Say writes one line of progress or advice to Err, in the form that the scripts had.
func (con *Console) Say(text string) {
	if !con.quiet {
		con.Warn(text)
	}
}

// Warn writes one line to Err that the user needs also with --quiet.
func (con *Console) Warn(text string) { fmt.Fprint(con.Err, progress.Lines("+++", time.Now(), text)) }

// AddProgress adds the flags that all commands have.
func (con *Console) AddProgress(flags *pflag.FlagSet) {
	flags.BoolVarP(&con.quiet, "quiet", "q", false, "print only data, warnings and errors")
	flags.BoolVarP(&con.verbose, "verbose", "v", false,
		"print each step, also if it is up to date, and what it does every second")
	flags.StringVar(&con.mode, "progress", "auto",
		"how progress is shown on stderr: auto (bars on a terminal that can redraw lines, else plain), bars, plain, "+
			"json or none")
}

// AddRecords adds the flags of the commands that run steps.
func (con *Console) AddRecords(flags *pflag.FlagSet) {
	flags.StringVar(&con.timeline, "timeline", "",
		"file for the time of each step, as a trace (JSON) that Perfetto and chrome://tracing open")
	flags.StringVar(&con.logFile, "log-file", "", "file to append a log of this run to")
}

// CheckProgress refuses an unknown progress mode and flags that contradict each other.
func (con *Console) CheckProgress() error {
	switch {
	case con.quiet && con.verbose:
		return exit.Usage(errors.New("--quiet and --verbose: give only one of them"))
	case con.quiet && con.mode != "auto" && con.mode != "none":
		return exit.Usage(fmt.Errorf("--quiet and --progress %s: give only one of them", con.mode))
	case slices.Contains(progress.Modes, con.mode):
		return nil
	}
	return exit.Usage(fmt.Errorf("--progress %q: must be %s", con.mode, exit.EitherOf(progress.Modes)))
}

// Mode returns how progress is shown: bars, plain, json or none.
func (con *Console) Mode() string {
	switch {
	case con.quiet:
		return "none"
	case con.mode != "auto":
		return con.mode
	case con.Redraws:
		return "bars"
	}
	return "plain"
}

// Begin starts to draw and returns the runner whose events are drawn.
func (con *Console) Begin() (*step.Runner, error) { return con.BeginLogged("") }

// BeginLogged is Begin for a command that changes this host. It keeps a log in
// host.LogDir, which turndown removes, unless the name of the command is empty.
func (con *Console) BeginLogged(command string) (*step.Runner, error) {
	all := progress.All{progress.New(con.Mode(), con.verbose, con.Err)}
	if con.timeline != "" {
		file, err := os.Create(con.timeline)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--timeline: %w", err))
		}
		all = append(all, progress.NewTimeline(file, con.timelineTitle(time.Now())))
	}
	switch {
	case con.logFile != "":
		file, err := progress.OpenLog(con.logFile)
		if err != nil {
			return nil, exit.Usage(fmt.Errorf("--log-file: %w", err))
		}
		all = append(all, progress.NewLog(file))
	case command != "":
		all = append(all, progress.NewLateLog(func() (io.WriteCloser, error) { return con.keepLog(command) }))
	}
	con.report = all
	return &step.Runner{Emit: all.Event}, nil
}

func (con *Console) keepLog(command string) (io.WriteCloser, error) {
	file, err := progress.CreateLog(host.LogDir, command, time.Now())
	if err == nil {
		con.keptLog = file.Name()
	}
	return file, err
}

// TellLog prints where the log of a failed run is.
func (con *Console) TellLog() {
	if _, err := os.Stat(con.keptLog); err == nil && con.Mode() != "json" {
		con.Warn("the log of this run is " + con.keptLog)
	}
}

// timelineTitle says what a timeline shows: the program, the machine and the time.
func (con *Console) timelineTitle(at time.Time) string {
	machine, _ := os.Hostname()
	return fmt.Sprintf("kube-bootstrap %s on %s, %s", con.Version, cmp.Or(machine, "this host"),
		at.Format(time.DateTime))
}

// End ends the drawing, so that later output does not overwrite it.
func (con *Console) End() {
	if con.report != nil {
		con.report.Close()
		con.report = nil
	}
}

// Done ends the drawing and says what was done since a time.
func (con *Console) Done(since time.Time, text string) {
	con.End()
	con.Say(text + ", in " + progress.Took(time.Since(since)))
}

// Do shows work that changes no host as a step.
func (con *Console) Do(ctx context.Context, id step.ID, name string, work func(context.Context) error) error {
	return con.Run(ctx, step.Plan{{step.Always(id, name, work)}})
}

// Run shows a plan that changes no host.
func (con *Console) Run(ctx context.Context, plan step.Plan) error {
	runner, err := con.Begin()
	if err != nil {
		return err
	}
	defer con.End()
	return runner.Do(ctx, plan)
}

var errDeclined = errors.New("not confirmed: nothing was changed")

// AddYes adds the flag that confirms a removal. A command that removes nothing needs none.
func AddYes(c *cobra.Command, removes bool) *bool {
	yes := !removes
	if removes {
		c.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask; needed where there is no terminal to ask on")
	}
	return &yes
}

// asks reports whether somebody can be asked: in CI nobody answers, even on a terminal.
func asks(in, out *os.File, env func(string) string) bool {
	return term.IsTerminal(int(in.Fd())) && term.IsTerminal(int(out.Fd())) && !progress.InCI(env)
}

// Confirm has the user confirm all losses, by --yes or by an answer on the terminal.
func (con *Console) Confirm(ctx context.Context, yes bool, losses func(context.Context) ([]string, error)) error {
	if yes {
		return nil
	}
	all, err := losses(ctx)
	switch {
	case err != nil:
		return exit.Firm(err)
	case len(all) == 0:
		return nil
	case !con.Asks:
		return exit.Firm(&step.Problem{
			Name:   "confirmation",
			Text:   "this removes " + strings.Join(all, ", ") + ", and there is no terminal to confirm that on",
			Remedy: "add --yes to remove that", Firm: true,
		})
	}
	fmt.Fprintf(con.Err, "This removes for good:\n  %s\nContinue? [y/N] ", strings.Join(all, "\n  "))
	answer, err := readLine(ctx, con.In)
	if err == nil && answer != "y" && answer != "yes" {
		return errDeclined
	}
	return err
}

// readLine returns a line in lower case. A Ctrl-C ends the wait for it.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	line := make(chan string, 1)
	go func() {
		text, _ := bufio.NewReader(in).ReadString('\n') // an error means no answer
		line <- strings.ToLower(strings.TrimSpace(text))
	}()
	select {
	case text := <-line:
		return text, nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}
