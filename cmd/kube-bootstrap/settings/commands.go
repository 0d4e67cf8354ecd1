package settings

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/reference"
)

// Command returns the command "config".
func Command(out io.Writer, env func(string) string) *cobra.Command {
	return command.Parent("config", "Write, show or validate the settings", configInit(out), configView(out, env),
		configValidate(out, env), configExplain(out), configSchema(out), configMigrate(out))
}

func configInit(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "init",
		Short: "Print a configuration file with every field and its default",
		Example: `  kube-bootstrap config init > cluster.yaml
  kube-bootstrap config init --machines > lab.yaml`,
	}
	schema := c.Flags().String("schema", "",
		"path or URL of the schema of the file, for editors; see \"config schema\"")
	machines := c.Flags().Bool("machines", false, "a short file for a cluster of machines, which are reached over SSH")
	c.RunE = func(*cobra.Command, []string) error {
		text := reference.Template()
		if *machines {
			text = []byte(reference.MachinesTemplate)
		}
		if *schema != "" {
			// Editors find the schema of a file by this line.
			text = append(fmt.Appendf(nil, "# yaml-language-server: $schema=%s\n", *schema), text...)
		}
		return output.Write(out, text, nil)
	}
	return c
}

func configView(out io.Writer, env func(string) string) *cobra.Command {
	c := &cobra.Command{
		Use:   "view",
		Short: "Print every setting and where it comes from",
		Example: `  kube-bootstrap config view
  FLANNEL_BACKEND=host-gw kube-bootstrap config view --config cluster.yaml -o table`,
	}
	AddFlags(c, config.Every)
	format := output.AddFlag(c)
	*format, c.Flags().Lookup("output").DefValue = "yaml", "yaml"
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, origins, err := Load(env, c.Flags(), config.Every, "")
		if err != nil {
			return err
		}
		if *format == "yaml" {
			text, err := file.View(cfg, origins)
			return output.Write(out, text, err)
		}
		values := file.Values(cfg, config.Every, origins)
		return format.Print(out, "Setting", values, func(w io.Writer) {
			output.Row(w, "FIELD", "VALUE", "FROM")
			for _, v := range values {
				output.Row(w, v.Field, v.Value, v.Origin)
			}
		})
	}
	return c
}

func configValidate(out io.Writer, env func(string) string) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Validate the configuration and list every invalid setting",
		Example: `  kube-bootstrap config validate --config cluster.yaml
  kube-bootstrap config validate --config worker.yaml --role worker`,
	}
	AddFlags(c, config.Every)
	role := c.Flags().String("role", "", "also check the settings that only this role needs: master or worker")
	_ = c.RegisterFlagCompletionFunc("role",
		cobra.FixedCompletions([]string{config.RoleControlPlane, config.RoleWorker},
			cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *role != "" && *role != config.RoleControlPlane && *role != config.RoleWorker {
			return exit.Usage(fmt.Errorf("--role %q: must be master or worker", *role))
		}
		if _, _, err := Load(env, c.Flags(), config.Every, *role); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, "valid")
		return err
	}
	return c
}

func configExplain(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "explain [FIELD]",
		Short: "Explain a field of the configuration file, or list all fields",
		Long: `Explain a field of the configuration file: its meaning, type, default, flag and
environment variables, and whether a later run may change it. The name of its
flag or of a variable finds it too. Without a field, list all fields.`,
		Example: "  kube-bootstrap config explain flannelBackend\n  kube-bootstrap config explain registry",
		ValidArgsFunction: command.FirstArg(cobra.FixedCompletions(reference.Fields(),
			cobra.ShellCompDirectiveNoFileComp)),
	}
	format := output.AddFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		name := strings.TrimPrefix(strings.Join(args, ""), "--")
		all, err := reference.Explain(name)
		if err != nil {
			return exit.Usage(err)
		}
		return format.Print(out, "Field", all, func(w io.Writer) { explainFields(w, all) })
	}
	return c
}

func explainFields(w io.Writer, all []reference.Explanation) {
	if len(all) > 1 {
		output.Row(w, "FIELD", "TYPE", "MEANING")
		for _, e := range all {
			output.Row(w, e.Field, e.Type, e.Meaning)
		}
		return
	}
	e := all[0]
	rows := [][2]string{
		{"field", e.Field}, {"meaning", e.Meaning}, {"type", e.Type}, {"default", e.Default},
		{"values", strings.Join(e.Values, ", ")},
		{"flag", e.Flag}, {"environment", strings.Join(e.Variables, ", ")}, {"may change", e.MayChange},
	}
	if e.Shared {
		rows = append(rows, [2]string{"shared", "the same on all hosts of a cluster; a host that joins gets it"})
	}
	if e.Secret {
		rows = append(rows, [2]string{"secret", "never printed or saved"})
	}
	output.Fields(w, rows)
}

func configSchema(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print a JSON Schema of the configuration file",
		Long: `Print a JSON Schema of the configuration file. Editors check and complete a file
by it that begins with the line which "config init --schema" prints.`,
		Example: `  kube-bootstrap config schema > kube-bootstrap.schema.json
  kube-bootstrap config init --schema kube-bootstrap.schema.json > cluster.yaml`,
		RunE: func(*cobra.Command, []string) error {
			data, err := reference.Schema()
			return output.Write(out, data, err)
		},
	}
}

func configMigrate(out io.Writer) *cobra.Command {
	return &cobra.Command{
		Use:   "migrate FILE",
		Short: "Print a configuration file of the previous tools in the current format",
		Long: `Print a configuration file of the previous tools, with the sections dind, source
and cluster, in the current format. Every field that has no successor is an error
with its line.`,
		Example: "  kube-bootstrap config migrate ~/.kubeadm-local-cluster/config.yaml > cluster.yaml",
		RunE: func(_ *cobra.Command, args []string) error {
			data, err := file.Migrate(args[0])
			return output.Write(out, data, exit.Usage(err))
		},
	}
}
