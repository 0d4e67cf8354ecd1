// Package session knows what only one kind of node has.
package session

import "github.com/kube-bootstrap/kube-bootstrap/pkg/docker"

var engine docker.Engine
