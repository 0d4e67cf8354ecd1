// Package flannel has a comment.
package flannel

var X int
