package settings

import (
	"fmt"
	"io"

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
	return command.Parent("config", "Write, show or validate the settings", configInit(out), configView(out, env), configValidate(out, env), configExplain(out), configSchema(out), configMigrate(out))
}

func configInit(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:     "init",
		Short:   "Print a configuration file with every field and its default",
		Example: "  kube-bootstrap config init > cluster.yaml",
		Args:    cobra.NoArgs,
	}
	schema := c.Flags().String("schema", "", "path or URL of the schema of the file, for editors; see \"config schema\"")
	c.RunE = func(*cobra.Command, []string) error {
		text := reference.Template()
		if *schema != "" {
			text = append([]byte(modeline(*schema)), text...)
		}
		_, err := out.Write(text)
		return err
	}
	return c
}

func configView(out io.Writer, env func(string) string) *cobra.Command {
	c := &cobra.Command{
		Use:   "view",
		Short: "Print every setting and where it comes from",
		Example: `  kube-bootstrap config view
  FLANNEL_BACKEND=host-gw kube-bootstrap config view --config cluster.yaml -o table`,
		Args: cobra.NoArgs,
	}
	AddFlags(c, config.Every)
	format := output.AddFlag(c)
	_ = c.Flags().Set("output", "yaml")
	c.Flags().Lookup("output").DefValue = "yaml"
	c.Flags().Lookup("output").Changed = false
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, origins, err := Load(env, c.Flags(), config.Every, "")
		if err != nil {
			return err
		}
		return printConfig(out, *format, cfg, origins)
	}
	return c
}

func printConfig(out io.Writer, format output.Format, cfg config.Config, origins config.Origins) error {
	if format == "yaml" {
		text, err := file.View(cfg, origins)
		if err == nil {
			_, err = out.Write(text)
		}
		return err
	}
	values := file.Values(cfg, config.Every, origins)
	return format.Print(out, "Setting", values, func(w io.Writer) {
		output.Row(w, "FIELD", "VALUE", "FROM")
		for _, v := range values {
			output.Row(w, v.Field, v.Value, v.Origin)
		}
	})
}

func configValidate(out io.Writer, env func(string) string) *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Validate the configuration and list every invalid setting",
		Example: `  kube-bootstrap config validate --config cluster.yaml
  kube-bootstrap config validate --config worker.yaml --role worker`,
		Args: cobra.NoArgs,
	}
	AddFlags(c, config.Every)
	role := c.Flags().String("role", "", "also ask for what only a master or a worker needs")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{config.RoleMaster, config.RoleWorker}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *role != "" && *role != config.RoleMaster && *role != config.RoleWorker {
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
