package containerd

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// ConfigFile is the CNI config that WriteCNI writes.
const ConfigFile = cniConfDir + "/10-kube-bootstrap.conflist"

const networkName = "kube-bootstrap"

// WriteCNI is the step that configures CNI: pods get an interface on docker0,
// with an address in the upper half of the subnet; Docker uses the lower
// half. lease returns the subnet with docker0's address, 10.1.7.1/24, and the
// MTU. Apply only writes a file.
func WriteCNI(files host.Files, lease func() (netip.Prefix, int, error)) step.Step {
	tree := func() ([]host.File, error) {
		subnet, mtu, err := lease()
		if err != nil {
			return nil, err
		}
		data, err := cniConfig(subnet, mtu)
		return []host.File{{Path: ConfigFile, Data: data}}, err
	}
	s := files.Step("write the CNI config", tree)
	s.Check = func(context.Context) (step.Diff, error) {
		all, err := tree()
		if err != nil {
			return step.Diff{"write " + ConfigFile + ", once this host's subnet is known (" + err.Error() + ")"}, nil
		}
		return files.Missing(all)
	}
	s.Undo = func(context.Context) error { return files.Drop(ConfigFile) }
	return s
}

type object = map[string]any

// cniConfig does not set docker0's address (isGateway false), because Docker
// does, and does not masquerade (ipMasq false), because flanneld does. A pod
// can reach itself through a Service (hairpinMode).
func cniConfig(subnet netip.Prefix, mtu int) ([]byte, error) {
	first, last, err := upperHalf(subnet)
	if err != nil {
		return nil, err
	}
	data, err := json.MarshalIndent(object{
		"cniVersion": "1.0.0",
		"name":       networkName,
		"plugins": []object{
			{
				"type": "bridge", "bridge": bridgeName, "isGateway": false, "ipMasq": false, "hairpinMode": true, "mtu": mtu,
				"ipam": object{
					"type": "host-local",
					"ranges": [][]object{{{
						"subnet": subnet.Masked().String(), "rangeStart": first.String(), "rangeEnd": last.String(), "gateway": subnet.Addr().String(),
					}}},
					"routes": []object{{"dst": "0.0.0.0/0"}},
				},
			},
			{"type": "portmap", "capabilities": object{"portMappings": true}},
		},
	}, "", "  ")
	return append(data, '\n'), err
}

// upperHalf returns the first and the last address for pods. The last address
// of the subnet is its broadcast address.
func upperHalf(subnet netip.Prefix) (first, last netip.Addr, err error) {
	if !subnet.IsValid() || !subnet.Addr().Is4() || subnet.Bits() > 29 {
		return first, last, fmt.Errorf("the subnet %s is too small for pods", subnet)
	}
	base := subnet.Masked().Addr().As4()
	start := binary.BigEndian.Uint32(base[:])
	size := uint32(1) << (32 - subnet.Bits())
	return addr(start + size/2), addr(start + size - 2), nil
}

func addr(n uint32) netip.Addr {
	return netip.AddrFrom4([4]byte(binary.BigEndian.AppendUint32(nil, n)))
}

// CNIProblems returns a problem for each CNI configuration that containerd
// would use instead of the one of this cluster [cni-config].
func CNIProblems(files host.Files, ours bool) error {
	var errs []error
	for _, pattern := range []string{"*.conf", "*.conflist", "*.json"} {
		for _, path := range files.Match(cniConfDir + "/" + pattern) {
			if ours && filepath.Base(path) >= filepath.Base(ConfigFile) {
				continue
			}
			errs = append(errs, &step.Problem{Name: "cni-config", Text: path + " configures another pod network, which containerd would use", Remedy: "move it to another directory"})
		}
	}
	return errors.Join(errs...)
}
