// Package etcd breaks every rule about imports and printing.
package etcd

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/moby/moby/client"
	"github.com/vishvananda/netlink"

	"github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/plan"
	"github.com/kube-bootstrap/kube-bootstrap/pkg/step"
)

var _, _, _, _, _ = exec.Command, client.New, netlink.LinkList, flannel.X, plan.X
var _ = step.X

func shout() {
	fmt.Println("no")
	os.Exit(1)
}
