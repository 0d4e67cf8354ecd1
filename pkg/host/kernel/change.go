package kernel

// Change is the kind of a kernel notification.
type Change string

// The changes that WatchNetwork and WatchFirewall report.
const (
	LinkChanged       Change = "link"       // or one of its addresses
	RouteChanged      Change = "route"      // or a removed neighbour of a VXLAN link, to which it routes
	ForwardingChanged Change = "forwarding" // or another setting of net.ipv4.conf
	RulesRemoved      Change = "rules"      // an nftables rule, which iptables-nft creates too
)
