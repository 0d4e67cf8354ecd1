package suite

import (
	"context"
	_ "embed" // end.sh
	"fmt"
	"io"
	"net"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/access"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/apiserver"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/cluster/remote"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/image/e2e"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// These steps prepare the nodes for the tests and clean up after them.

const (
	contentDir = "/var/lib/containerd/io.containerd.content.v1.content"
	mirrorPort = "10999"
	mirrorMark = "# written by kube-bootstrap cluster e2e"
)

// stages returns the steps that copy the programs to the control plane and the images to all nodes.
func (s *run) stages() step.Plan {
	stage := []step.Step{
		s.put("put-tests", "put the tests on ", s.Programs.Test, "e2e.test"),
		s.put("put-ginkgo", "put ginkgo on ", s.Programs.Ginkgo, "ginkgo"),
	}
	var mirrors []step.Step
	for _, n := range s.nodes {
		stage, mirrors = append(stage, s.load(n.Name)), append(mirrors, s.mirrorFor(n.Name), s.reject(n.Name))
	}
	return step.Plan{stage, append(mirrors, s.digest())}
}

func (s *run) put(id step.ID, name, from, to string) step.Step {
	return remote.Put(s.session, id, name+s.controlPlane.Name, s.controlPlane.Name,
		remote.FileCopy{From: from, To: suiteDir + "/" + to, Mode: 0o755})
}

func (s *run) load(name string) step.Step {
	node := s.session.Node(name)
	missing := func(ctx context.Context) (images []e2e.TestImage, refs step.Diff, err error) {
		has, err := imagesOn(ctx, node)
		if err != nil {
			return nil, nil, err
		}
		for _, img := range s.Images {
			digest, err := img.OCI.Digest()
			if err != nil {
				return nil, nil, err
			}
			// An image of the cluster itself stays as it is.
			if now, ok := has[img.Ref]; !ok || e2e.OfTests(img.Ref) && now != digest {
				images, refs = append(images, img), append(refs, "load "+img.Ref)
			}
		}
		return images, refs, nil
	}
	return step.Step{
		ID: step.IDOf("load-test-images", name), Name: "load the images of the tests into " + name,
		Check: func(ctx context.Context) (step.Diff, error) {
			_, refs, err := missing(ctx)
			return refs, err
		},
		Apply: func(ctx context.Context) error {
			images, _, err := missing(ctx)
			if err != nil {
				return err
			}
			reader, writer := io.Pipe()
			go func() { writer.CloseWithError(e2e.WriteLayout(writer, images)) }()
			defer reader.Close()
			return node.Exec(ctx, host.Command{
				Args: []string{"ctr", "-n", "k8s.io", "images", "import", "-"}, Stdin: reader,
			})
		},
	}
}

// imagesOn lists the images of a node with their manifest digests.
func imagesOn(ctx context.Context, node access.Connection) (map[string]v1.Hash, error) {
	out, err := access.Output(ctx, node, "ctr", "-n", "k8s.io", "images", "ls")
	if err != nil {
		return nil, err
	}
	all := map[string]v1.Hash{}
	for line := range strings.Lines(out) {
		if fields := strings.Fields(line); len(fields) > 2 {
			if digest, err := v1.NewHash(fields[2]); err == nil {
				all[fields[0]] = digest
			}
		}
	}
	return all, nil
}

// digest returns the step that determines which manifests the control plane serves.
func (s *run) digest() step.Step {
	return step.Always("look-up-test-images", "look up the images of the tests on "+s.controlPlane.Name,
		func(ctx context.Context) error {
			has, err := imagesOn(ctx, s.onControlPlane())
			s.digests = map[string]v1.Hash{}
			for _, img := range s.Images {
				s.digests[img.Ref] = has[img.Ref]
			}
			return err
		})
}

func (s *run) mirror() string { return net.JoinHostPort(s.controlPlane.Addr.String(), mirrorPort) }

// mirrorScript writes a hosts.toml unless the node already has one.
const mirrorScript = `dir=/etc/containerd/certs.d/$1
if [ -e "$dir/hosts.toml" ] && ! grep -q '^` + mirrorMark + `' "$dir/hosts.toml"; then exit 0; fi
mkdir -p "$dir" && cat >"$dir/hosts.toml"`

// mirrorFor returns the step that makes a node pull the test images from the control
// plane. The node already has them, but some tests require that they are pulled
// again.
func (s *run) mirrorFor(node string) step.Step {
	return step.Always(step.IDOf("pull-test-images", node),
		"let "+node+" pull the images of the tests from "+s.controlPlane.Name, func(ctx context.Context) error {
			for _, registry := range registriesOf(s.Images) {
				hosts := fmt.Sprintf("%s\nserver = \"https://%s\"\n[host.\"http://%s\"]\n  capabilities = [\"pull\", "+
					"\"resolve\"]\n", mirrorMark, registry, s.mirror())
				write := host.Command{Args: access.Script(mirrorScript, registry), Stdin: strings.NewReader(hosts)}
				if err := s.session.Node(node).Exec(ctx, write); err != nil {
					return err
				}
			}
			return nil
		})
}

func registriesOf(images []e2e.TestImage) (all []string) {
	for _, img := range images {
		registry, _, _ := strings.Cut(img.Ref, "/")
		all = append(all, registry)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// endScript stops tests that still run. After an interrupt they get a minute to
// remove what they created. Then the script removes the remaining namespaces,
// found by the label of the suite, and the finalizers in them that only the
// tests would remove. Its arguments are the container of the suite and the kubeconfig.
//
//go:embed scripts/end.sh
var endScript string

// leftScript lists what endScript would remove.
const leftScript = `docker ps -aq --filter name=^/` + suiteContainer + `$
docker exec kubelet kubectl --kubeconfig ` + apiserver.AdminKubeconfig + ` get namespaces -l e2e-run -o name`

// mirrorsScript lists what removeMirrorScript removes.
const mirrorsScript = "grep -ls '^" + mirrorMark + "' /etc/containerd/certs.d/*/hosts.toml || true"

const removeMirrorScript = `for f in /etc/containerd/certs.d/*/hosts.toml; do
	if grep -qs '^` + mirrorMark + `' "$f"; then rm "$f" && { rmdir "${f%/*}" 2>/dev/null || true; }; fi
done`

func (s *run) tidy(name string) step.Step {
	return undo("tidy", name, s.onControlPlane(), leftScript, endScript, suiteContainer, apiserver.AdminKubeconfig)
}

// undo returns the step that runs the script remove with args on a node if left prints lines there.
func undo(id step.ID, name string, node access.Connection, left, remove string, args ...string) step.Step {
	return step.Step{
		ID: id, Name: name, Waits: true,
		Check: func(ctx context.Context) (step.Diff, error) {
			out, err := access.Output(ctx, node, access.Script(left)...)
			return strings.FieldsFunc(out, func(r rune) bool { return r == '\n' }), err
		},
		Apply: func(ctx context.Context) error { return access.Run(ctx, node, access.Script(remove, args...)...) },
	}
}

// leave removes everything that this run created, also after an interrupt.
func (s *run) leave(ctx context.Context) error {
	ctx, cancel := step.Limited(context.WithoutCancel(ctx))
	defer cancel()
	stage := []step.Step{s.tidy("end the tests and remove what they left")}
	for _, n := range s.nodes {
		node := s.session.Node(n.Name)
		stage = append(stage,
			undo(step.IDOf("undo-mirror", n.Name), "let "+n.Name+" pull from where it did", node, mirrorsScript,
				removeMirrorScript),
			undo(step.IDOf("accept-unknown-services", n.Name), "accept packets to unknown Services on "+n.Name, node,
				rejectedScript, acceptScript))
	}
	return s.session.Run(ctx, step.Plan{stage})
}

// Some tests expect that nobody answers on a Service port that was removed.
// kube-proxy has no rule for such a port, so the node sends the packets to its
// default gateway, and a transparent proxy behind it may accept the connection.
// During a run the nodes reject packets that still have the address of a Service
// after kube-proxy's rules.

const rejectMark = "kube-bootstrap-e2e"

const networkScript = `docker exec kubelet kubectl --kubeconfig ` + apiserver.AdminKubeconfig +
	` get servicecidrs kubernetes -o 'jsonpath={.spec.cidrs[0]}'`

// rejectScript adds the rules for the network $1.
const rejectScript = `for chain in FORWARD OUTPUT; do
	rule="$chain -d $1 -m comment --comment ` + rejectMark + ` -j REJECT"
	iptables -w -C $rule 2>/dev/null || iptables -w -I $rule || exit
done`

// acceptScript deletes the rules, whatever their network is.
const acceptScript = `iptables -w -S | sed -n '/--comment ` + rejectMark + ` /s/^-A/iptables -w -D/p' | sh -e`

// rejectedScript lists the rules that acceptScript deletes.
const rejectedScript = "iptables -w -S | grep -e '--comment " + rejectMark + " ' || true"

func (s *run) reject(name string) step.Step {
	return step.Always(step.IDOf("reject-unknown-services", name), "reject packets to unknown Services on "+name,
		func(ctx context.Context) error {
			network, err := access.Output(ctx, s.onControlPlane(), access.Script(networkScript)...)
			if err != nil {
				return err
			}
			return access.Run(ctx, s.session.Node(name), access.Script(rejectScript, network)...)
		})
}
