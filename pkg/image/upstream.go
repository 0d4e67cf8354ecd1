package image

// Upstreams returns the registries in the names of images, independent of the
// registry that serves them: the registries of the catalogue, and docker.io for
// names without a registry.
func Upstreams() []string {
	return []string{"registry.k8s.io", "ghcr.io", OurRegistry, "docker.io", "quay.io"}
}
