// Package step imports its sibling.
package step

import "github.com/kube-bootstrap/kube-bootstrap/pkg/config"

var X = config.X
