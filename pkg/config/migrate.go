package config

import "fmt"

// Migrate returns a configuration file with the settings of a file of the
// previous tools.
func Migrate(path string) ([]byte, error) {
	var given Config
	root, err := readDocument(path)
	if err != nil {
		return nil, err
	}
	if root == nil || !isOld(root) {
		return nil, fmt.Errorf("%s is not a file of the previous tools, so there is nothing to migrate", path)
	}
	origins := Origins{}
	if err := (decoder{path: path, strict: true}).decode(&given, root, origins); err != nil {
		return nil, err
	}
	return encodeTree(given.tree(func(s Setting) (bool, string) { return origins[s.Field].Source == FromFile, "" }))
}
