package command

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// foreignArgs is the annotation of a command that passes arguments on to another program.
const foreignArgs = "kube-bootstrap.dev/foreign-arguments"

// PassOn makes a command pass on what follows its first own arguments to another program,
// flags included. The flags of the command come before that.
func PassOn(c *cobra.Command, own int) {
	c.Annotations = map[string]string{foreignArgs: strconv.Itoa(own)}
}

// Separate puts "--" before the arguments that a command passes on to another program. pflag
// would otherwise read the flags among them as flags of the command.
// https://github.com/spf13/pflag/blob/v1.0.10/flag.go#L1130-L1150
//
//	cluster kubectl --name two -n kube-system get pods
//	cluster kubectl --name two -- -n kube-system get pods
func Separate(root *cobra.Command, args []string) []string {
	if len(args) > 0 && strings.HasPrefix(args[0], cobra.ShellCompRequestCmd) { // __complete, __completeNoDesc
		return append(args[:1:1], Separate(root, args[1:])...)
	}
	c, rest, err := root.Find(args)
	own, errOwn := strconv.Atoi(c.Annotations[foreignArgs])
	if err != nil || errOwn != nil {
		return args
	}
	at := foreignIndex(c, rest, own)
	if at < 0 {
		return args
	}
	names := strings.Fields(c.CommandPath())[1:]
	return slices.Concat(names, rest[:at], []string{"--"}, rest[at:])
}

// foreignIndex returns the index of the first argument that c passes on; -1 if there is none or
// "--" precedes it. Without own arguments, a flag that c does not have is passed on too.
func foreignIndex(c *cobra.Command, args []string, own int) int {
	c.InitDefaultHelpFlag()
	seen := 0
	for i := 0; i < len(args); i++ {
		arg := args[i]
		switch {
		case arg == "--":
			return -1
		case len(arg) > 1 && arg[0] == '-':
			f := flagOf(c, arg)
			if f == nil && own == 0 {
				return i
			}
			if f != nil && f.NoOptDefVal == "" && takesNext(arg) {
				i++
			}
		case seen == own:
			return i
		default:
			seen++
		}
	}
	return -1
}

// takesNext reports whether the value of a flag is the next argument, as in "--name two" and "-f FILE".
func takesNext(arg string) bool {
	if strings.HasPrefix(arg, "--") {
		return !strings.Contains(arg, "=")
	}
	return len(arg) == 2
}

func flagOf(c *cobra.Command, arg string) *pflag.Flag {
	for _, flags := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
		var f *pflag.Flag
		if long, is := strings.CutPrefix(arg, "--"); is {
			name, _, _ := strings.Cut(long, "=")
			f = flags.Lookup(name)
		} else {
			f = flags.ShorthandLookup(arg[1:2])
		}
		if f != nil {
			return f
		}
	}
	return nil
}
