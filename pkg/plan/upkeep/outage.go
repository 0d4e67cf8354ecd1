package upkeep

import (
	"sync/atomic"
	"time"
)

// longOutage is the shortest outage of the control plane after which the kubelet
// and kube-proxy are restarted. By then the node controller has marked the pods of
// a host that is cut off as not Ready (after 50 s), and the watches of client-go
// pause for up to a minute between two attempts. A new kubelet lists its pods at
// once, and a new kube-proxy the endpoints of Services.
const longOutage = 50 * time.Second

// outages holds the end of the last long outage of the control plane, as seen
// from this host.
type outages struct{ last atomic.Pointer[time.Time] }

// note records an outage that ends now. It reports whether it was a long one.
func (o *outages) note(outage time.Duration) bool {
	if outage < longOutage {
		return false
	}
	now := time.Now()
	o.last.Store(&now)
	return true
}

// end returns the end of the last long outage, the zero time if there was none.
func (o *outages) end() time.Time {
	if at := o.last.Load(); at != nil {
		return *at
	}
	return time.Time{}
}
