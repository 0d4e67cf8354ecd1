package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
)

func (p *program) configCommand() *cobra.Command {
	return parent("config", "Write, show or check the settings", p.configInit(), p.configView(), p.configValidate(), p.configExplain(), p.configSchema(), p.configMigrate())
}

func (p *program) configInit() *cobra.Command {
	c := &cobra.Command{
		Use:     "init",
		Short:   "Print a configuration file with every field and its default",
		Example: "  kube-bootstrap config init > cluster.yaml",
		Args:    cobra.NoArgs,
	}
	schema := c.Flags().String("schema", "", "path or URL of the schema of the file, for editors; see \"config schema\"")
	c.RunE = func(*cobra.Command, []string) error {
		text := config.Template()
		if *schema != "" {
			text = append([]byte(modeline(*schema)), text...)
		}
		_, err := p.out.Write(text)
		return err
	}
	return c
}

func (p *program) configView() *cobra.Command {
	c := &cobra.Command{
		Use:   "view",
		Short: "Print every setting and where it comes from",
		Example: `  kube-bootstrap config view
  FLANNEL_BACKEND=host-gw kube-bootstrap config view --config cluster.yaml -o table`,
		Args: cobra.NoArgs,
	}
	p.addSettings(c, config.Every)
	format := addOutput(c)
	_ = c.Flags().Set("output", "yaml")
	c.Flags().Lookup("output").DefValue = "yaml"
	c.Flags().Lookup("output").Changed = false
	c.RunE = func(c *cobra.Command, _ []string) error {
		cfg, origins, err := p.load(c.Flags(), config.Every, "")
		if err != nil {
			return err
		}
		return p.printConfig(*format, cfg, origins)
	}
	return c
}

func (p *program) printConfig(format string, cfg config.Config, origins config.Origins) error {
	if format == "yaml" {
		text, err := cfg.View(origins)
		if err == nil {
			_, err = p.out.Write(text)
		}
		return err
	}
	values := cfg.Values(config.Every, origins)
	return p.print(format, values, func(w io.Writer) {
		cells(w, "FIELD", "VALUE", "FROM")
		for _, v := range values {
			cells(w, v.Field, v.Value, v.Origin)
		}
	})
}

func (p *program) configValidate() *cobra.Command {
	c := &cobra.Command{
		Use:   "validate",
		Short: "Validate the configuration and list every invalid setting",
		Example: `  kube-bootstrap config validate --config cluster.yaml
  kube-bootstrap config validate --config worker.yaml --role worker`,
		Args: cobra.NoArgs,
	}
	p.addSettings(c, config.Every)
	role := c.Flags().String("role", "", "also ask for what only a master or a worker needs")
	_ = c.RegisterFlagCompletionFunc("role", cobra.FixedCompletions([]string{config.RoleMaster, config.RoleWorker}, cobra.ShellCompDirectiveNoFileComp))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *role != "" && *role != config.RoleMaster && *role != config.RoleWorker {
			return &usageError{fmt.Errorf("--role %q: must be master or worker", *role)}
		}
		if _, _, err := p.load(c.Flags(), config.Every, *role); err != nil {
			return err
		}
		_, err := fmt.Fprintln(p.out, "valid")
		return err
	}
	return c
}
