package scheduling

import (
	"strconv"

	"kerf.sh/kerf/internal/snapshot"
)

// wildcard reports whether a host port is bound on all addresses.
func wildcard(ip string) bool { return ip == "" || ip == "0.0.0.0" || ip == "::" }

func protocol(p string) string {
	if p == "" {
		return "TCP"
	}
	return p
}

// portsConflict reports whether two host ports cannot be on one node: same port
// and protocol, and the same address or all addresses on either side.
func portsConflict(a, b *snapshot.HostPort) bool {
	return a.Port == b.Port && protocol(a.Protocol) == protocol(b.Protocol) &&
		(a.IP == b.IP || wildcard(a.IP) || wildcard(b.IP))
}

// firstPortConflict returns the first port of a that conflicts with one of b.
func firstPortConflict(a, b []snapshot.HostPort) *snapshot.HostPort {
	for i := range a {
		for k := range b {
			if portsConflict(&a[i], &b[k]) {
				return &a[i]
			}
		}
	}
	return nil
}

func portString(p *snapshot.HostPort) string {
	s := strconv.Itoa(int(p.Port)) + "/" + protocol(p.Protocol)
	if !wildcard(p.IP) {
		s = p.IP + ":" + s
	}
	return s
}
