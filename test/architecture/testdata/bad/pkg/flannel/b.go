// Package flannel has another comment.
package flannel
