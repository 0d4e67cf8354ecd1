package kubelet

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	kubeletv1 "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/host"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/filesystem"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/host/kernel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

// Own is what sets this node apart from the others of its cluster.
type Own struct {
	Labels             []string // KEY=VALUE
	Taints             []string // KEY=VALUE:EFFECT
	CPUs, Memory, Disk string   // what pods may use; "": all
	Config             string   // further fields of the configuration, as JSON
}

// apply puts them into the configuration. What pods may not use is reserved
// for the system: the kubelet then keeps them below the rest, all together.
func (o Own) apply(c *kubeletv1.KubeletConfiguration) error {
	for _, word := range o.Taints {
		taint, effect, _ := strings.Cut(word, ":")
		key, value, _ := strings.Cut(taint, "=")
		c.RegisterWithTaints = append(c.RegisterWithTaints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	for _, l := range o.limits() {
		left, err := l.left()
		if err != nil {
			return err
		}
		if left.Sign() > 0 {
			if c.SystemReserved == nil {
				c.SystemReserved = map[string]string{}
			}
			c.SystemReserved[l.resource] = left.String()
		}
	}
	if o.Config == "" {
		return nil
	}
	return yaml.UnmarshalStrict([]byte(o.Config), c)
}

// limit is one resource of which pods may use only a part.
type limit struct {
	field, resource, wanted string
	have                    func() (resource.Quantity, error)
}

func (o Own) limits() []limit {
	all := []limit{
		{"nodeCPUs", "cpu", o.CPUs, func() (resource.Quantity, error) {
			return *resource.NewQuantity(int64(runtime.NumCPU()), resource.DecimalSI), nil
		}},
		{"nodeMemory", "memory", o.Memory, func() (resource.Quantity, error) { return inBytes(kernel.MemoryTotal()) }},
		{"nodeDisk", "ephemeral-storage", o.Disk, func() (resource.Quantity, error) { return inBytes(filesystem.TotalBytes(host.Files{}, Dir)) }},
	}
	return slices.DeleteFunc(all, func(l limit) bool { return l.wanted == "" })
}

func inBytes(n int64, err error) (resource.Quantity, error) {
	return *resource.NewQuantity(n, resource.BinarySI), err
}

// left returns what remains after the wanted amount is subtracted.
func (l limit) left() (resource.Quantity, error) {
	have, err := l.have()
	if err != nil {
		return have, err
	}
	wanted, err := resource.ParseQuantity(l.wanted)
	have.Sub(wanted)
	return have, err
}

// Problems lists the settings of the node that this host cannot satisfy.
func (o Own) Problems() error {
	var errs []error
	for _, l := range o.limits() {
		left, err := l.left()
		if err == nil && left.Sign() < 0 {
			have, _ := l.have()
			err = &step.Problem{Name: "node-size", Text: fmt.Sprintf("%s: %s is more than the %s that this host has", l.field, l.wanted, have.String()),
				Remedy: "give less, or leave it out"}
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
