// Package tokens contains the command that creates, lists and deletes the tokens with which hosts join.
package tokens

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/command"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/exit"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/output"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/progress"
	"github.com/kube-bootstrap/kube-bootstrap/cmd/kube-bootstrap/thishost"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/local"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/membership"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan/renewal"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// newToken is what `token create -o json` prints: the one place that shows a token.
type newToken struct {
	Token      string    `json:"token"`
	Expires    time.Time `json:"expires,omitzero"`
	CACertHash string    `json:"caCertHash"`
	MasterIP   string    `json:"masterIP"`
	// CertificateKey is for a further control plane, and good for two hours.
	CertificateKey string `json:"certificateKey,omitempty"`
	Command        string `json:"command"`
}

// Command returns the command "token", for control planes.
func Command(out io.Writer) *cobra.Command {
	return command.Parent("token", "Create, list or delete the tokens with which hosts join", tokenCreate(out),
		tokenList(out), tokenDelete())
}

func tokenCreate(out io.Writer) *cobra.Command {
	c := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print the command that joins a host",
		Long: `Create a token and print the command that joins a host.

A token lets one worker in, under a name that no node of the cluster has, and is
deleted when that worker has joined. With --node, it lets in only the worker of
that name, also if the cluster has this node already: use it for a host that was
installed again. With --reusable, it lets in any number of workers until it
expires. A token for workers cannot read what control planes share.`,
		Example: `  kube-bootstrap token create
  kube-bootstrap token create --node worker-1     # for the host of this name only
  kube-bootstrap token create --reusable --ttl 1h # for several workers
  kube-bootstrap token create --control-plane     # for a further control plane`,
	}
	ttl := c.Flags().Duration("ttl", 24*time.Hour, "how long it is good; 0 is for ever")
	description := c.Flags().String("description", "", "what it is for")
	controlPlane := c.Flags().Bool("control-plane", false, "the host joins as a control plane, within two hours")
	node := c.Flags().String("node", "", "name of the only worker that can join with it")
	reusable := c.Flags().Bool("reusable", false, "any number of hosts can join with it until it expires")
	lent := c.Flags().Bool("until-input-ends", false, "delete it when the input ends")
	_ = c.Flags().MarkHidden("until-input-ends")
	format := output.AddFlag(c)
	c.RunE = func(c *cobra.Command, _ []string) error {
		if *ttl < 0 {
			return exit.Usage(fmt.Errorf("--ttl %s: must not be less than zero", *ttl))
		}
		scope := join.Scope{Kind: join.ForWorker, Node: *node, Reusable: *reusable}
		if *controlPlane {
			scope.Kind = join.ForControlPlane
		}
		if err := checkScope(scope, c.Flags().Changed("node")); err != nil {
			return exit.Usage(err)
		}
		made, err := makeToken(c.Context(), *ttl, scope, *description)
		if err != nil {
			return err
		}
		err = format.Print(out, "JoinToken", made, func(w io.Writer) { fmt.Fprintln(w, made.Command) })
		if *lent {
			id, _, _ := strings.Cut(made.Token, ".")
			err = errors.Join(err, deleteAtEnd(c.Context(), c.InOrStdin(), id))
		}
		return err
	}
	return c
}

// deleteAtEnd deletes a token when the input ends or the command is interrupted. `cluster up` runs the
// command over a connection: the input ends also if `cluster up` is killed, and no token remains valid.
func deleteAtEnd(ctx context.Context, in io.Reader, id string) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = io.Copy(io.Discard, in)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	// The API server may restart meanwhile.
	return step.Until(context.WithoutCancel(ctx), func(ctx context.Context) error {
		err := deleteToken(ctx, id)
		if apierrors.IsNotFound(err) { // the host that has used it has deleted it
			return nil
		}
		return err
	}, nil)
}

func deleteToken(ctx context.Context, id string) error {
	client, err := thishost.AdminClient()
	if err != nil {
		return err
	}
	return join.DeleteToken(ctx, client, id)
}

func checkScope(scope join.Scope, named bool) error {
	wrong := validation.IsDNS1123Subdomain(scope.Node)
	switch {
	case !named:
		return nil
	case scope.Kind != join.ForWorker:
		return fmt.Errorf("--node %s is for a worker: leave out --node or --control-plane", scope.Node)
	case scope.Reusable:
		return fmt.Errorf("--node %s is for one host: leave out --node or --reusable", scope.Node)
	case len(wrong) > 0:
		return fmt.Errorf("--node %q: %s", scope.Node, wrong[0])
	}
	return nil
}

func makeToken(
	ctx context.Context, ttl time.Duration, scope join.Scope, description string,
) (made newToken, err error) {
	client, err := thishost.AdminClient()
	if err != nil {
		return made, err
	}
	saved, err := file.ReadSaved(config.SavedPath)
	if err != nil {
		return made, err
	}
	ca, err := os.ReadFile(join.ClusterCAFile)
	if err != nil {
		return made, err
	}
	hash, err := join.CAHashOf(ca)
	if err != nil {
		return made, err
	}
	h, err := local.Open(saved)
	if err != nil {
		return made, err
	}
	if err := joinable(ctx); err != nil {
		return made, err
	}
	share := func() (certkey.Key, error) { return membership.Share(ctx, h) }
	create := func() (join.Token, error) { return join.CreateToken(ctx, client, ttl, scope, description) }
	token, key, err := createToken(scope.Kind, share, create)
	if err != nil {
		return made, err
	}
	made = newToken{Token: token.Reveal(), Expires: token.Expires, CACertHash: hash, MasterIP: h.IP()}
	if scope.Kind == join.ForWorker {
		made.Command = join.JoinCommand(h.IP(), token, hash)
		return made, nil
	}
	made.CertificateKey, made.Command = key.Reveal(), join.ControlPlaneCommand(h.IP(), token, hash, key)
	return made, nil
}

// restartLimit is how long the API server may need to start again after the join of another control plane.
const restartLimit = 30 * time.Second

// joinable returns why no host can join now. It waits for an API server that restarts. Just after its
// start, an API server knows no rules yet, and forbids everything.
func joinable(ctx context.Context) error {
	return step.Until(step.WithLimit(ctx, restartLimit), func(ctx context.Context) error {
		err := renewal.Joinable(ctx)
		if err == nil || utilnet.IsConnectionRefused(err) || apierrors.IsForbidden(err) {
			return err
		}
		return step.Final(err)
	}, nil)
}

// createToken creates a token. For a control plane, it first shares what control planes
// need: a token that was created before a failure would be valid, and nobody has seen it.
func createToken(
	kind join.HostKind, share func() (certkey.Key, error), create func() (join.Token, error),
) (token join.Token, key certkey.Key, err error) {
	if kind == join.ForControlPlane {
		if key, err = share(); err != nil {
			return token, key, err
		}
	}
	token, err = create()
	return token, key, err
}

func tokenList(out io.Writer) *cobra.Command {
	return output.ListCommand(&cobra.Command{
		Use:     "list",
		Short:   "List the tokens, without their secrets",
		Example: "  kube-bootstrap token list",
	}, out, "Token", tokenColumns, func(ctx context.Context) ([]join.Token, error) {
		client, err := thishost.AdminClient()
		if err != nil {
			return nil, err
		}
		return join.ListTokens(ctx, client)
	})
}

var tokenColumns = []output.Column[join.Token]{
	{Head: "ID", Cell: func(t join.Token) string { return t.ID }},
	{Head: "KIND", Cell: func(t join.Token) string { return cmp.Or(string(t.Kind), "-") }},
	{Head: "NODE", Cell: func(t join.Token) string { return cmp.Or(t.Node, t.UsedBy, "-") }},
	{Head: "USES", Cell: uses},
	{Head: "EXPIRES", Cell: func(t join.Token) string { return expiry(t.Expires) }},
	{Head: "DESCRIPTION", Cell: func(t join.Token) string { return t.Description }},
}

func uses(t join.Token) string {
	switch {
	case t.Kind == "":
		return "none"
	case t.Reusable:
		return "unlimited"
	case t.UsedBy != "":
		return "used"
	}
	return "one"
}

func expiry(at time.Time) string {
	switch {
	case at.IsZero():
		return "never"
	case at.Before(time.Now()):
		return "expired"
	}
	return "in " + progress.Took(time.Until(at).Round(time.Minute))
}

func tokenDelete() *cobra.Command {
	c := &cobra.Command{
		Use:     "delete ID...",
		Short:   "Delete tokens; no host can join with them afterwards",
		Example: "  kube-bootstrap token delete abcdef",
	}
	ignoreNotFound := c.Flags().Bool("ignore-not-found", false, "succeed if a token does not exist")
	c.RunE = func(c *cobra.Command, args []string) error {
		for _, id := range args {
			err := deleteToken(c.Context(), id)
			if err != nil && !(*ignoreNotFound && apierrors.IsNotFound(err)) {
				return err
			}
		}
		return nil
	}
	return c
}
