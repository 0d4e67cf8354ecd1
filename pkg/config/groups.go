package config

// Group is a heading in the help of a command.
type Group string

// The groups of flags, in the order in which a help text shows them.
const (
	GroupContainers Group = "Cluster of containers"
	GroupJoin       Group = "Joining a cluster"
	GroupCluster    Group = "Kubernetes"
	GroupComponents Group = "Components of Kubernetes"
	GroupNetwork    Group = "Network"
	GroupHost       Group = "Host and node"
	GroupImages     Group = "Images"
	GroupRegistry   Group = "Private registry"
)

// Groups are all groups.
var Groups = []Group{GroupContainers, GroupJoin, GroupCluster, GroupComponents, GroupNetwork, GroupHost, GroupImages, GroupRegistry}

// GroupOf returns the group of a flag; "" if it is no setting.
func GroupOf(flag string) Group {
	for _, s := range settings {
		if s.Flag == flag {
			return s.Group
		}
	}
	return ""
}
