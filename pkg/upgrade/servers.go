package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/version"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/kube"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Server is the API server of one control plane.
type Server struct {
	Address string // of its host
	API     kube.Connect
}

// Servers are the API servers of a cluster.
type Servers []Server

func (s Server) version(ctx context.Context) (is version.Info, err error) {
	ctx, cancel := step.Checking(ctx)
	defer cancel()
	client, err := s.API.Client()
	if err != nil {
		return is, err
	}
	data, err := client.Discovery().RESTClient().Get().AbsPath("/version").DoRaw(ctx)
	if err == nil {
		err = json.Unmarshal(data, &is)
	}
	return is, step.Wrap(err, "ask the API server of %s for its version", s.Address)
}

// Incomplete returns the problem that some API servers are not of the version yet [upgrade-incomplete].
func (s Servers) Incomplete(ctx context.Context, release string) error {
	behind, err := s.which(ctx, func(is version.Info) bool { return is.GitVersion != release })
	if err != nil || len(behind) == 0 {
		return err
	}
	return &step.Problem{
		Name: "upgrade-incomplete", Firm: true,
		Text:   fmt.Sprintf("the API servers of %s do not run Kubernetes %s yet", strings.Join(behind, ", "), release),
		Remedy: "run `kube-bootstrap upgrade apply` there first",
	}
}

// Emulating returns the problem that some API servers emulate an older version [upgrade-emulating]. The
// version skew policy holds for the emulated version, so that no kubelet may be newer than that.
// https://github.com/kubernetes/enhancements/tree/master/keps/sig-architecture/4330-compatibility-versions
func (s Servers) Emulating(ctx context.Context) error {
	behind, err := s.which(ctx, func(is version.Info) bool {
		return is.EmulationMinor != "" && is.EmulationMinor != is.Minor
	})
	if err != nil || len(behind) == 0 {
		return err
	}
	return &step.Problem{
		Name: "upgrade-emulating", Firm: true,
		Text: fmt.Sprintf("the API servers of %s still emulate the version before the upgrade",
			strings.Join(behind, ", ")),
		Remedy: "run `kube-bootstrap upgrade finish` there, then here again",
	}
}

func (s Servers) which(ctx context.Context, match func(version.Info) bool) (addresses []string, err error) {
	for _, one := range s {
		is, err := one.version(ctx)
		if err != nil {
			return nil, err
		}
		if match(is) {
			addresses = append(addresses, one.Address)
		}
	}
	return addresses, nil
}
