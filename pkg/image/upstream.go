package image

// Upstreams are the registries whose names images have, wherever they are
// taken from: those of the catalogue, and the one that bare names mean.
func Upstreams() []string { return []string{"registry.k8s.io", "ghcr.io", OurRegistry, "docker.io"} }
