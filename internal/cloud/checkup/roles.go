package checkup

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/iam/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/doctor"
)

// nodeNeeds is what nodes ask of AWS before they are ready, as far as policies cannot leave it
// to some resources: where they are, and the way to images of ECR.
var nodeNeeds = []string{"ec2:DescribeInstances", "ecr:GetAuthorizationToken"}

// FindRoles fills what there is to say of the roles and profiles of f.Classes, and Roles. The
// stack was found before.
func (c *Checkup) FindRoles(ctx context.Context, f *doctor.Facts) {
	byName := map[string]*doctor.Role{}
	var names []string
	add := func(role, class string) {
		if role == "" {
			return
		}
		r := byName[role]
		if r == nil {
			r = &doctor.Role{Name: role}
			byName[role] = r
			names = append(names, role)
		}
		r.Classes = append(r.Classes, class)
	}
	for i := range f.Classes {
		k := &f.Classes[i]
		if k.Deleting {
			continue
		}
		if k.Profile == "" {
			add(k.Role, k.Name)
			continue
		}
		c.look(ctx, f, doctor.LookProfiles, func(ctx context.Context) error {
			roles, err := c.profile(ctx, k.Profile)
			k.ProfileRoles = roles
			return err
		})
		for _, r := range k.ProfileRoles {
			add(r, k.Name)
		}
	}
	slices.Sort(names)
	account, partition := accountOf(f.Who)
	sweep := ""
	if f.Stack != nil {
		if i := slices.IndexFunc(f.Stack.Functions, func(x doctor.Function) bool { return x.Name == "sweep" }); i >= 0 {
			sweep = f.Stack.Functions[i].Role
		}
	}
	for _, n := range names {
		r := byName[n]
		c.look(ctx, f, doctor.LookRoles, func(ctx context.Context) error { return c.role(ctx, r) })
		if r.ARN == "" && account != "" {
			r.ARN = "arn:" + partition + ":iam::" + account + ":role/" + r.Name
		}
		if r.ARN != "" && !r.Missing {
			c.may(ctx, f, r, sweep)
		}
		// aws-auth has ARNs without paths.
		r.Mapped = slices.ContainsFunc(c.Mapped["system:nodes"], func(arn string) bool {
			return arn == r.ARN || arn[:strings.IndexByte(arn+"/", '/')+1] == r.ARN[:strings.IndexByte(r.ARN+"/", '/')+1] && arn[strings.LastIndexByte(arn, '/')+1:] == bare(r.Name)
		})
		f.Roles = append(f.Roles, *r)
	}
}

// accountOf takes account and partition out of an ARN.
func accountOf(arn string) (account, partition string) {
	parts := strings.SplitN(arn, ":", 6)
	if len(parts) != 6 {
		return "", ""
	}
	return parts[4], parts[1]
}

// profile gives the roles in an instance profile; nil = there is no such profile.
func (c *Checkup) profile(ctx context.Context, name string) ([]string, error) {
	out, err := c.Identities.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: &name})
	if awserr.Is(err, awserr.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	roles := []string{}
	for _, r := range out.InstanceProfile.Roles {
		roles = append(roles, pathName(aws.ToString(r.Path), aws.ToString(r.RoleName)))
	}
	return roles, nil
}

// pathName is a role as classes name it: with its path.
func pathName(path, name string) string { return strings.TrimPrefix(path, "/") + name }

// bare is a role without its path.
func bare(name string) string { return name[strings.LastIndexByte(name, '/')+1:] }

func (c *Checkup) role(ctx context.Context, r *doctor.Role) error {
	out, err := c.Identities.GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(bare(r.Name))})
	if awserr.Is(err, awserr.NotFound) {
		r.Missing = true
		return nil
	}
	if err != nil {
		return err
	}
	r.ARN = aws.ToString(out.Role.Arn)
	r.Trusts, err = services(aws.ToString(out.Role.AssumeRolePolicyDocument))
	return err
}

// may asks IAM what it would decide: whether the sweep function may hand the role on, and
// what a node with it may do.
func (c *Checkup) may(ctx context.Context, f *doctor.Facts, r *doctor.Role, sweep string) {
	if sweep != "" {
		c.look(ctx, f, doctor.LookPassRole, func(ctx context.Context) error {
			out, err := c.Identities.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{
				PolicySourceArn: &sweep, ActionNames: []string{"iam:PassRole"}, ResourceArns: []string{r.ARN},
				ContextEntries: []types.ContextEntry{{ContextKeyName: aws.String("iam:PassedToService"), ContextKeyType: types.ContextKeyTypeEnumString, ContextKeyValues: []string{"ec2.amazonaws.com"}}},
			})
			if err != nil {
				return err
			}
			for _, e := range out.EvaluationResults {
				r.Pass = decision(&e)
			}
			return nil
		})
	}
	c.look(ctx, f, doctor.LookNodeMay, func(ctx context.Context) error {
		out, err := c.Identities.SimulatePrincipalPolicy(ctx, &iam.SimulatePrincipalPolicyInput{PolicySourceArn: &r.ARN, ActionNames: nodeNeeds})
		if err != nil {
			return err
		}
		for _, e := range out.EvaluationResults {
			if decision(&e) != "allowed" {
				r.Denied = append(r.Denied, aws.ToString(e.EvalActionName))
			}
		}
		slices.Sort(r.Denied)
		return nil
	})
}

// decision is what IAM would decide, an organisation's policies included.
func decision(e *types.EvaluationResult) string {
	if o := e.OrganizationsDecisionDetail; o != nil && !o.AllowedByOrganizations {
		return "explicitDeny"
	}
	return string(e.EvalDecision)
}

// FindEntries fills the access entries of the nodes' roles and of functions.
func (c *Checkup) FindEntries(ctx context.Context, f *doctor.Facts) {
	if f.EKS == nil || f.EKS.AuthMode == "CONFIG_MAP" {
		return
	}
	entry := func(role string) (typ string, groups []string, ok bool) {
		ok = c.look(ctx, f, doctor.LookEntries, func(ctx context.Context) error {
			out, err := c.Cluster.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: &f.Cluster, PrincipalArn: &role})
			if gone(err) {
				return nil
			}
			if err != nil {
				return err
			}
			if out.AccessEntry != nil {
				typ, groups = aws.ToString(out.AccessEntry.Type), out.AccessEntry.KubernetesGroups
				if groups == nil {
					groups = []string{}
				}
			}
			return nil
		})
		return typ, groups, ok
	}
	for i := range f.Roles {
		if r := &f.Roles[i]; r.ARN != "" && !r.Missing {
			r.Entry, _, _ = entry(r.ARN)
		}
	}
	if f.Stack == nil {
		return
	}
	for i := range f.Stack.Functions {
		if fn := &f.Stack.Functions[i]; fn.Role != "" {
			_, fn.Entry, _ = entry(fn.Role)
		}
	}
}
