package command

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/previous"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/spelling"
)

// suggested lists the names that other tools use for a command.
var suggested = map[string][]string{
	"master":                   {"init", "server", "controller"},
	"worker":                   {"join"},
	"turndown":                 {"uninstall", "clean"},
	"cluster up":               {"create", "start", "apply", "new"},
	"cluster down":             {"stop", "halt"},
	"cluster clean":            {"delete", "remove", "rm", "destroy"},
	"cluster list":             {"ls", "get", "ps", "profile"},
	"cluster kubeconfig":       {"kubeconfig", "config", "credentials"},
	"cluster load-image":       {"load", "import", "image"},
	"cluster dump":             {"export", "logs", "sysinfo"},
	"dump":                     {"logs", "sysinfo"},
	"cluster snapshot save":    {"create", "take"},
	"cluster snapshot list":    {"ls", "get"},
	"cluster snapshot remove":  {"delete", "rm"},
	"cluster snapshot restore": {"apply", "load"},
	"node remove":              {"delete", "rm"},
	"node list":                {"ls", "get"},
	"node stop":                {"drain", "cordon"},
	"node start":               {"uncordon"},
	"node ssh":                 {"exec", "shell"},
	"node add":                 {"create", "join"},
	"token create":             {"add", "new"},
	"token list":               {"ls", "get"},
	"token delete":             {"remove", "rm"},
	"offline build":            {"save"},
	"offline bootstrap":        {"load", "import"},
	"offline list":             {"ls", "images"},
	"config view":              {"show", "print", "get"},
	"config init":              {"defaults"},
	"config explain":           {"describe", "help"},
	"config migrate":           {"convert", "upgrade"},
}

// mindArguments makes a command report wrong arguments as usage errors, in full sentences.
// Without a check of its own, it takes the arguments of its usage line.
func mindArguments(c *cobra.Command) {
	_, name, _ := strings.Cut(c.CommandPath(), " ")
	c.SuggestFor = append(c.SuggestFor, suggested[name]...)
	check := c.Args
	if check == nil {
		check = checkByUse
	}
	c.Args = func(c *cobra.Command, args []string) error {
		if err := check(c, args); err != nil {
			return exit.Usage(wrongArguments(c, args, err))
		}
		return nil
	}
}

// argumentsOf returns the arguments in the usage line of a command, which precede the
// flags. [NAME] is not required, and NAME... may be repeated.
func argumentsOf(c *cobra.Command) (names, required []string, several bool) {
	use, _, _ := strings.Cut(c.Use, " --")
	names = strings.Fields(use)[1:]
	required = slices.DeleteFunc(slices.Clone(names), func(name string) bool { return strings.HasPrefix(name, "[") })
	several = slices.ContainsFunc(names,
		func(name string) bool { return strings.HasSuffix(strings.Trim(name, "[]"), "...") })
	return names, required, several
}

func checkByUse(c *cobra.Command, args []string) error {
	names, required, several := argumentsOf(c)
	if several {
		return cobra.MinimumNArgs(len(required))(c, args)
	}
	return cobra.RangeArgs(len(required), len(names))(c, args)
}

func wrongArguments(c *cobra.Command, args []string, err error) error {
	names, required, several := argumentsOf(c)
	switch {
	case c.HasSubCommands():
		return unknownCommand(c, args[0])
	case len(args) < len(required):
		return fmt.Errorf("%s is missing; write `%s %s`", strings.TrimSuffix(required[len(args)], "..."),
			c.CommandPath(), strings.Join(names, " "))
	case len(names) == 0:
		return fmt.Errorf("`%s` takes no arguments, and %q is one%s; `%s --help` lists its flags", c.CommandPath(),
			args[0], addressMeant(c, args[0]), c.CommandPath())
	case len(args) > len(names) && !several:
		return fmt.Errorf("%q is one argument too many; write `%s %s`", args[len(names)], c.CommandPath(),
			strings.Join(names, " "))
	case len(c.ValidArgs) > 0:
		return fmt.Errorf("%q: must be %s", args[0], strings.Join(c.ValidArgs, " or "))
	}
	return err
}

// addressMeant suggests the flag for an address that was given without one.
func addressMeant(c *cobra.Command, arg string) string {
	if _, err := netip.ParseAddr(arg); err != nil || c.Flags().Lookup("master-ip") == nil {
		return ""
	}
	return ", did you mean --master-ip " + arg + "?"
}

func unknownCommand(c *cobra.Command, name string) error {
	text := fmt.Sprintf("unknown command %q for %q", name, c.CommandPath())
	meant := calledElsewhere(c, name)
	if len(meant) == 0 {
		meant = c.SuggestionsFor(name)
	}
	if len(meant) > 0 {
		text += ", did you mean " + exit.EitherOf(meant) + "?"
	}
	return errors.New(text + "; `" + c.CommandPath() + " --help` lists them")
}

// calledElsewhere returns the commands below c that other tools call by this name, as
// they are typed after c, at the nearest level: `cluster ls` means `cluster list` and
// not `cluster snapshot list`.
func calledElsewhere(c *cobra.Command, name string) []string {
	var all, below []string
	for _, child := range c.Commands() {
		if child.Hidden {
			continue
		}
		if child.Name() == name || slices.Contains(child.SuggestFor, name) {
			all = append(all, child.Name())
		}
		for _, one := range calledElsewhere(child, name) {
			below = append(below, child.Name()+" "+one)
		}
	}
	if len(all) > 0 {
		return all
	}
	return below
}

// argError replaces cobra's error about an unknown command, which wraps none and has several lines.
func argError(c *cobra.Command, err error) error {
	if err == nil || errors.Unwrap(err) != nil || !strings.HasPrefix(err.Error(), "unknown command") {
		return err
	}
	_, rest, _ := strings.Cut(err.Error(), "\"")
	name, _, _ := strings.Cut(rest, "\"")
	return exit.Usage(unknownCommand(c, name))
}

// flagError adds the flag that was probably meant.
func flagError(c *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		if remedy, known := previous.Flag(unknown.GetSpecifiedName()); known {
			return exit.Usage(fmt.Errorf("%w; %s", err, remedy))
		}
		if of := c.Flags().Lookup("cluster"); of != nil && unknown.GetSpecifiedName() == "name" {
			return exit.Usage(fmt.Errorf("%w; --cluster names the cluster", err))
		}
		var known []string
		c.Flags().VisitAll(func(f *pflag.Flag) { known = append(known, "--"+f.Name) })
		err = fmt.Errorf("%w%s", err, spelling.Meant("--"+unknown.GetSpecifiedName(), known))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok && invalid.GetFlag().Value.Type() == "duration" {
		return exit.Usage(fmt.Errorf("--%s %q: must be a duration in hours, minutes or seconds, such as 24h or 90s",
			invalid.GetFlag().Name, invalid.GetValue()))
	}
	return exit.Usage(fmt.Errorf("%w; `%s --help` lists the flags", err, c.CommandPath()))
}
