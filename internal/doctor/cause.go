package doctor

import (
	"slices"
	"strings"
)

// cause is a reason for which nodes do not join, and how a console tells of it.
type cause struct {
	// words that a line has to hold, all of one of the lists.
	words [][]string
	what  string
}

// causes are what keeps a node from joining, the most telling first.
var causes = []cause{
	{[][]string{{"unauthorized"}, {"must be logged in"}}, "the API server does not let the node in: its role has no access entry, and no line in aws-auth"},
	{[][]string{{"not authorized to perform"}, {"accessdenied"}, {"unauthorizedoperation"}}, "the role of the node lacks a permission"},
	{[][]string{{"no such host"}, {"name resolution"}, {"could not resolve"}}, "the node cannot resolve a name: DNS support of the VPC, or its DHCP options"},
	{[][]string{{"i/o timeout"}, {"context deadline exceeded"}, {"connection timed out"}, {"connect timeout"}, {"network is unreachable"}, {"connection refused"}},
		"the node cannot reach the API server, or AWS: no route (NAT or endpoints) from its subnet, or a security group in the way"},
	{[][]string{{"x509"}, {"certificate signed by unknown authority"}}, "the node does not trust the API server: user data with the certificate of another cluster"},
	{[][]string{{"nodeadm", "invalid"}, {"nodeadm", "failed to unmarshal"}, {"nodeadm", "error parsing"}, {"failed to parse kubelet"}, {"unknown flag"}, {"bootstrap.sh", "error"}},
		"the user data or the kubelet's configuration is wrong"},
	{[][]string{{"no space left on device"}}, "its volume is too small for the image"},
	{[][]string{{"kernel panic"}, {"emergency mode"}, {"failed to mount"}}, "the image does not start"},
}

// telling are how many lines of a console are kept, and how long each.
const (
	telling    = 6
	longestBit = 240
)

// Telling are the lines of a console that say why a node does not join: the last few that
// tell of a cause.
func Telling(console string) []string {
	var out []string
	for line := range strings.Lines(console) {
		line = strings.TrimSpace(line)
		if of(line) == nil {
			continue
		}
		if len(line) > longestBit {
			line = strings.ToValidUTF8(line[:longestBit], "") + "..."
		}
		if !slices.Contains(out, line) {
			out = append(out, line)
		}
	}
	return out[max(0, len(out)-telling):]
}

// of is the first cause that a line tells of, nil for none.
func of(line string) *cause {
	line = strings.ToLower(line)
	for i := range causes {
		for _, words := range causes[i].words {
			if !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(line, w) }) {
				return &causes[i]
			}
		}
	}
	return nil
}

// cause is why an instance has no node, and what to do.
func (w *walk) cause(in *Instance) (string, []string) {
	look := []string{w.aws("ec2 get-console-output --latest --output text --instance-id %s", in.ID)}
	if r := w.roleOf(in); r != nil && !r.Missing {
		switch {
		case r.Entry == "STANDARD":
			return "the access entry of its role " + r.Name + " is of type STANDARD", []string{w.aws("eks delete-access-entry --cluster-name %s --principal-arn %s", w.f.Cluster, r.ARN), w.nodesIn(r)}
		case r.Entry == "" && !r.Mapped && w.knowsAccess():
			return "its role " + r.Name + " has no access entry, and no line in aws-auth", []string{w.nodesIn(r)}
		}
	}
	var best *cause
	said := ""
	for _, line := range in.Console {
		if c := of(line); c != nil && (best == nil || slices.IndexFunc(causes, same(c)) < slices.IndexFunc(causes, same(best))) {
			best, said = c, line
		}
	}
	if best != nil {
		return best.what + ". Its console says: " + said, look
	}
	if why, fix := w.noRoute(in); why != "" {
		return why, append(fix, look...)
	}
	if r := w.roleOf(in); r != nil && w.seen(LookNodeMay) && len(r.Denied) > 0 {
		return "its role " + r.Name + " may not " + strings.Join(r.Denied, ", "),
			[]string{"aws iam attach-role-policy --role-name " + r.Name + " --policy-arn arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy"}
	}
	if in.Status == "impaired" || in.Status == "insufficient-data" {
		return "EC2's status checks say " + in.Status + ": the image does not start, or the host is ill", look
	}
	if !w.seen(LookConsole) {
		return "not known without its console", look
	}
	if in.Route != "" {
		return "neither its console nor the routes of its subnet say: security groups between node and API server, or the user data, are what is left", look
	}
	return "its console says nothing of one: a route to the API server (NAT, endpoints, security groups) is what is missing most often",
		append(look, w.aws("ec2 describe-route-tables --filters Name=association.subnet-id,Values=%s --query 'RouteTables[].Routes'", in.Subnet))
}

// noRoute says whether a subnet leads nowhere that a node has to be.
func (w *walk) noRoute(in *Instance) (string, []string) {
	private := w.f.EKS != nil && w.f.EKS.Private
	tables := w.aws("ec2 describe-route-tables --filters Name=vpc-id,Values=%s --query 'RouteTables[].[RouteTableId,Associations[].SubnetId]'", w.vpc())
	switch {
	case in.Route == "none" && !private:
		return "subnet " + in.Subnet + " has no default route, and the API server's endpoint is public only: the node cannot reach it",
			[]string{tables, w.aws("ec2 create-route --route-table-id TABLE --destination-cidr-block 0.0.0.0/0 --nat-gateway-id NAT")}
	case in.Route == "none":
		return "subnet " + in.Subnet + " has no default route: without endpoints for ec2, ecr.api, ecr.dkr, s3 and sts the node gets no images",
			[]string{w.aws("ec2 describe-vpc-endpoints --filters Name=vpc-id,Values=%s --query 'VpcEndpoints[].ServiceName'", w.vpc())}
	case in.Route == "internet" && !in.Public:
		return "subnet " + in.Subnet + " is a public one (its default route is an internet gateway), and the node has no public address: it cannot get out",
			[]string{"kubectl edit ec2nodeclass   (select private subnets, or spec.associatePublicIPAddress: true)"}
	}
	return "", nil
}

func same(c *cause) func(cause) bool {
	return func(o cause) bool { return o.what == c.what }
}

// roleOf is the role that an instance runs with, nil = not known.
func (w *walk) roleOf(in *Instance) *Role {
	if i := slices.IndexFunc(w.f.Roles, func(r Role) bool { return in.Role != "" && r.bare() == in.Role }); i >= 0 {
		return &w.f.Roles[i]
	}
	return nil
}

// bare is the name of a role without its path.
func (r *Role) bare() string { return r.Name[strings.LastIndexByte(r.Name, '/')+1:] }
