package local

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/bundle/artifact"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/addresses"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/config/file"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/controlplane"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/join/certkey"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/registry"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Answer is the result of a question to another machine before preflight.
type Answer struct {
	Name, Title string
	Err         error
	Note        string // what the run does because of the answer; may be empty
}

// Resolve returns a copy of this host that is completed with answers of other
// machines: a joining host gets the shared settings and the registry from the
// cluster, and the registry provides the versions. It changes nothing on the
// host. Preflight reports each unanswered question as a problem.
func (h *Host) Resolve(ctx context.Context, role string) *Host {
	ctx = h.Limited(ctx)
	resolved := *h
	resolved.Answers = nil
	if role == Worker || h.Config.Join {
		askToJoin(ctx, &resolved, role)
	}
	resolved.ask("registry", "reach the registry", func() error { return resolved.askRegistry(ctx) })
	err := resolved.supply(ctx, role)
	resolved.Answers = append(resolved.Answers, Answer{"images", "look for the images", err, resolved.Supply.Note})
	return &resolved
}

// ask records the answer, unless the user ignores the problem of this name.
func (h *Host) ask(name, title string, question func() error) {
	if slices.Contains(h.Config.IgnorePreflight, name) {
		return
	}
	h.Answers = append(h.Answers, Answer{Name: name, Title: title, Err: question()})
}

// askToJoin asks the control plane, if the settings name one and what it requires.
func askToJoin(ctx context.Context, h *Host, role string) {
	if missing := h.Config.ValidateJoin(role).ToAggregate(); h.Saved.Role != role && missing != nil {
		problem := &step.Problem{
			Name: "join-settings", Firm: true,
			Text:   "this host cannot join a cluster without these settings: " + missing.Error(),
			Remedy: "run the command that `kube-bootstrap token create` on a control plane prints",
		}
		h.Answers = append(h.Answers, Answer{
			Name: "join-settings", Title: "look for the settings of the cluster to join", Err: problem,
		})
		return
	}
	h.ask("control-plane", "reach the control plane", func() error { return h.askControlPlane(ctx) })
}

// askControlPlane adopts the shared settings of the cluster.
func (h *Host) askControlPlane(ctx context.Context) error {
	data, err := h.Join.Data(ctx)
	if err != nil {
		return err
	}
	theirs, err := file.WithShared(h.Config, data.Settings)
	if err != nil {
		return err
	}
	h.follow(theirs)
	takeKey(h, data.VerifyKey)
	if h.Registry == nil {
		if h.Registry, err = registry.Parse(data.Registry); err != nil {
			return err
		}
	}
	if err := errors.Join(h.UseCatalogue(), joinSkewProblem(h, data.ServerVersion)); err != nil {
		return err
	}
	return askForBundle(ctx, h)
}

// askRegistry adopts the versions of the bundle in the registry. An installed
// host does not ask its saved registry, which may not be reachable any more.
func (h *Host) askRegistry(ctx context.Context) error {
	if h.RegistryLost != nil {
		return h.RegistryLost
	}
	if h.Registry == nil || h.Saved.Role != "" && h.Config.Registry.Address == "" {
		return nil
	}
	if err := h.Registry.Check(ctx, artifact.IndexPath, false); err != nil || h.ImagesFrom() != FromRegistry {
		return err
	}
	b, err := artifact.Open(ctx, h.Registry, h.Versions.Kubernetes, h.Source().Signed())
	switch {
	case errors.Is(err, bundle.ErrUntrusted):
		return &step.Problem{Name: "bundle", Firm: true, Text: err.Error(),
			Remedy: "push a bundle that is signed with the key of --verify-key, " +
				"or set --verify-key to the public key of its signer"}
	case err != nil:
		return err
	}
	defer b.Close()
	if archs := b.Archs(); !slices.Contains(archs, h.Config.Arch) {
		return &step.Problem{Name: "bundle", Firm: true,
			Text:   fmt.Sprintf("%s is for %s, not for %s", b.Path, strings.Join(archs, ", "), h.Config.Arch),
			Remedy: "push a bundle for this architecture too"}
	}
	h.pushed = b.Manifest.Versions
	return h.UseCatalogue()
}

// follow adopts the shared settings of the cluster that this host joins. An
// installed host adopts only the settings that cannot change, because the user may
// have changed the others on this host.
func (h *Host) follow(theirs config.Config) {
	which := config.IsShared
	if h.Saved.Installed() {
		which = config.SharedFixed
	}
	cfg, refused := h.Config.WithInForce(which, theirs, h.Given)
	h.Config, h.Refused = cfg, append(h.Refused, refused...)
}

func joining(h *Host) *join.Joining {
	joining := &join.Joining{Files: h.Files, Target: target(h), Known: knownJoinData(h)}
	if h.Config.Join {
		joining.Shares = controlplane.SharedFiles()
	}
	return joining
}

// knownJoinData returns the join data that a host which has joined has saved.
func knownJoinData(h *Host) join.Data {
	saved := h.Saved.Config
	if !h.Saved.Installed() || h.Saved.Lost != nil || h.Saved.Role == ControlPlane && !saved.Join {
		return join.Data{}
	}
	return join.Data{Server: BalancedAPI(h), ServerVersion: saved.KubernetesVersion, Settings: file.Shared(saved)}
}

func target(h *Host) join.TargetCluster {
	token, _ := join.ParseToken(h.Config.Token) // the formats are validated with the configuration
	key, _ := certkey.Parse(h.Config.CertificateKey)
	kind := join.ForWorker
	if h.Config.Join {
		kind = join.ForControlPlane
	}
	return join.TargetCluster{
		Host: h.Config.HostName, Kind: kind,
		Server: net.JoinHostPort(addresses.Text(h.Config.MasterIP), strconv.Itoa(h.Config.APIServerPort)),
		Token:  token, CAHash: h.Config.CACertHash, Key: key,
	}
}

// keepJoined sets Join on a control plane that joined earlier, also without
// --join. On the first control plane it clears Join if the user names this
// very cluster.
func (h *Host) keepJoined() {
	if h.Saved.Role != ControlPlane {
		return
	}
	if !h.Saved.Config.Join {
		h.Config.Join = h.Config.Join && !createdHere(h, h.Config.CACertHash)
		return
	}
	h.Config.Join = true
	if !h.Config.MasterIP.IsValid() {
		h.Config.MasterIP = h.Saved.Config.MasterIP
	}
}

// createdHere reports whether hash is the CA hash of the cluster that this host
// created, which makes --join a no-op.
func createdHere(h *Host, hash string) bool {
	data, _ := h.Files.Read(join.ClusterCAFile)
	own, err := join.CAHashOf(data) // of no certificate if there is no cluster
	return err == nil && own == hash
}

// findRegistry sets the registry: the one in the settings, else the saved one.
func (h *Host) findRegistry() error {
	known, err := registry.Load(h.Files)
	if host.IsDamaged(err) {
		h.RegistryLost, err = &step.Problem{
			Name: "registry-settings", Text: "the configuration of the private registry is lost: " + err.Error(),
			Remedy: "set the registry again with --registry, its user and its certificates",
		}, nil
	}
	if err != nil || h.Config.Registry.Address == "" {
		h.Registry = known
		return err
	}
	h.RegistryLost = nil
	// Docker's credential helpers, which this may call, have no timeout.
	given, err := registry.New(context.Background(), h.Config.Registry)
	if err != nil {
		return &step.Problem{Name: "registry-settings", Text: err.Error(), Remedy: "correct the setting"}
	}
	given.Complete(known)
	h.Registry = given
	return nil
}
