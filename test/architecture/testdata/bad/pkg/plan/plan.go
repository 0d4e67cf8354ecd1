// Package plan is good.
package plan

import "github.com/kube-bootstrap/kube-bootstrap/pkg/flannel"

var X = flannel.X
