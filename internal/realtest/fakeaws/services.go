package fakeaws

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"kerf.sh/kerf/internal/cloud/ec2fake"
)

func ec2Actions(f *ec2fake.EC2) map[string]operation {
	return map[string]operation{
		"CreateFleet": serves(f.CreateFleet), "DescribeInstances": serves(f.DescribeInstances), "TerminateInstances": serves(f.TerminateInstances),
		"CreateTags": serves(f.CreateTags), "RunInstances": serves(f.RunInstances),
		"CreateLaunchTemplate": serves(f.CreateLaunchTemplate), "DescribeLaunchTemplates": serves(f.DescribeLaunchTemplates), "DeleteLaunchTemplate": serves(f.DeleteLaunchTemplate),
		"DescribeSubnets": serves(f.DescribeSubnets), "DescribeSecurityGroups": serves(f.DescribeSecurityGroups), "DescribePlacementGroups": serves(f.DescribePlacementGroups),
		"DescribeImages": serves(f.DescribeImages), "DescribeCapacityReservations": serves(f.DescribeCapacityReservations),
		"DescribeSpotPriceHistory": serves(f.DescribeSpotPriceHistory), "DescribeInstanceStatus": serves(f.DescribeInstanceStatus),
		"DescribeInstanceTypes": serves(f.DescribeInstanceTypes), "DescribeInstanceTypeOfferings": serves(f.DescribeInstanceTypeOfferings),
		"DescribeAvailabilityZones": serves(f.DescribeAvailabilityZones), "DescribeReservedInstances": serves(f.DescribeReservedInstances),
	}
}

func iamActions(f *ec2fake.IAM) map[string]operation {
	return map[string]operation{
		"GetInstanceProfile": serves(f.GetInstanceProfile), "CreateInstanceProfile": serves(f.CreateInstanceProfile), "TagInstanceProfile": serves(f.TagInstanceProfile),
		"AddRoleToInstanceProfile": serves(f.AddRoleToInstanceProfile), "RemoveRoleFromInstanceProfile": serves(f.RemoveRoleFromInstanceProfile),
		"DeleteInstanceProfile": serves(f.DeleteInstanceProfile), "ListInstanceProfiles": serves(f.ListInstanceProfiles),
	}
}

func stsActions() map[string]operation {
	identity := func(context.Context, *sts.GetCallerIdentityInput, ...func(*sts.Options)) (*sts.GetCallerIdentityOutput, error) {
		return &sts.GetCallerIdentityOutput{Account: aws.String(Account), Arn: aws.String("arn:aws:sts::" + Account + ":assumed-role/kerf/session"), UserId: aws.String("AROAKERF:session")}, nil
	}
	decode := func(_ context.Context, in *sts.DecodeAuthorizationMessageInput, _ ...func(*sts.Options)) (*sts.DecodeAuthorizationMessageOutput, error) {
		raw, err := base64.StdEncoding.DecodeString(aws.ToString(in.EncodedMessage))
		if err != nil {
			return nil, ec2fake.Error("InvalidAuthorizationMessageException", "Message is not valid")
		}
		text, err := json.Marshal(map[string]any{"allowed": false, "explicitDeny": false, "context": string(raw)})
		return &sts.DecodeAuthorizationMessageOutput{DecodedMessage: aws.String(string(text))}, err
	}
	return map[string]operation{"GetCallerIdentity": serves(identity), "DecodeAuthorizationMessage": serves(decode)}
}

func ssmMethods(f *ec2fake.SSM) map[string]method {
	return map[string]method{
		"AmazonSSM.GetParameter": takes(func(ctx context.Context, in *ssm.GetParameterInput) (any, error) {
			out, err := f.GetParameter(ctx, in)
			if err != nil {
				return nil, err
			}
			p := map[string]any{"Name": out.Parameter.Name, "Value": out.Parameter.Value, "Type": "String", "Version": 1}
			return map[string]any{"Parameter": p}, nil
		}),
	}
}

// products is a page of the price list that is asked for.
type products struct {
	ServiceCode string
	Filters     []struct{ Field, Type, Value string }
	MaxResults  int
	NextToken   string
	// FormatVersion is asked for by nobody here.
	FormatVersion string
}

// pricingMethods serve the on-demand prices of the types of an EC2. Every filter has to be
// one of Linux on shared tenancy, or nothing is found.
func pricingMethods(f *ec2fake.EC2) map[string]method {
	wanted := map[string]string{
		"regionCode": Region, "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux", "capacitystatus": "Used",
		"marketoption": "OnDemand", "tenancy": "Shared", "productFamily": "Compute Instance",
	}
	list := func(_ context.Context, in *products) (any, error) {
		out := map[string]any{"FormatVersion": "aws_v1", "PriceList": []string{}}
		for _, filter := range in.Filters {
			if filter.Type != "TERM_MATCH" {
				return nil, ec2fake.Error("InvalidParameterException", "filter %s is %s, this AWS knows TERM_MATCH", filter.Field, filter.Type)
			}
			if have, ok := wanted[filter.Field]; !ok || have != filter.Value {
				return out, nil
			}
		}
		from := 0
		if in.NextToken != "" {
			var err error
			if from, err = strconv.Atoi(in.NextToken); err != nil {
				return nil, ec2fake.Error("InvalidNextTokenException", "the token %q is invalid", in.NextToken)
			}
		}
		names := slices.Sorted(maps.Keys(f.Types))
		to := min(len(names), from+cmp.Or(in.MaxResults, 100))
		var page []string
		for _, name := range names[from:to] {
			entry, err := json.Marshal(map[string]any{
				"product": map[string]any{"attributes": map[string]string{"instanceType": name}},
				"terms": map[string]any{"OnDemand": map[string]any{"term": map[string]any{"priceDimensions": map[string]any{
					"dimension": map[string]any{"pricePerUnit": map[string]string{"USD": micro(f.Types[name].OnDemand)}}}}}},
			})
			if err != nil {
				return nil, err
			}
			page = append(page, string(entry))
		}
		out["PriceList"] = page
		if to < len(names) {
			out["NextToken"] = strconv.Itoa(to)
		}
		return out, nil
	}
	return map[string]method{"AWSPriceListService.GetProducts": takes(list)}
}

// Region is the region of everything.
const Region = "us-east-1"

// EKS is the one cluster that is told of.
type EKS struct {
	Name, Version, Endpoint string
	CA                      []byte // PEM
	ServiceCIDR             string
	// SecurityGroup is the cluster's own.
	SecurityGroup string
}

func (a *AWS) serveEKS(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	name, ok := strings.CutPrefix(r.URL.Path, "/clusters/")
	if r.Method != http.MethodGet || !ok || strings.Contains(name, "/") {
		restError(w, http.StatusForbidden, "AccessDeniedException", "this AWS serves DescribeCluster alone, not "+r.Method+" "+r.URL.Path)
		return
	}
	a.note(Call{callerOf(r), "eks", "DescribeCluster"})
	if err := a.permit(callerOf(r), "eks", "DescribeCluster"); err != nil {
		restError(w, http.StatusForbidden, "AccessDeniedException", err.Error())
		return
	}
	if name != a.EKS.Name {
		restError(w, http.StatusNotFound, "ResourceNotFoundException", "No cluster found for name: "+name+".")
		return
	}
	answer(w, map[string]any{"cluster": map[string]any{
		"name": a.EKS.Name, "arn": "arn:aws:eks:" + Region + ":" + Account + ":cluster/" + name, "version": a.EKS.Version, "endpoint": a.EKS.Endpoint, "status": "ACTIVE", "platformVersion": "eks.1",
		"certificateAuthority": map[string]string{"data": base64.StdEncoding.EncodeToString(a.EKS.CA)}, "accessConfig": map[string]any{"authenticationMode": "API"},
		"kubernetesNetworkConfig": map[string]string{"serviceIpv4Cidr": a.EKS.ServiceCIDR, "ipFamily": "ipv4"},
		"resourcesVpcConfig": map[string]any{"endpointPublicAccess": true, "endpointPrivateAccess": true, "publicAccessCidrs": []string{"0.0.0.0/0"},
			"clusterSecurityGroupId": a.EKS.SecurityGroup, "vpcId": "vpc-1"},
	}})
}

func restError(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("X-Amzn-ErrorType", code)
	w.WriteHeader(status)
	answer(w, map[string]string{"message": message})
}

// serveLambda calls functions.
func (a *AWS) serveLambda(w http.ResponseWriter, r *http.Request) {
	name, ok := strings.CutPrefix(r.URL.Path, "/2015-03-31/functions/")
	name, rest, _ := strings.Cut(name, "/")
	if i := strings.LastIndexByte(name, ':'); i >= 0 { // an ARN
		name = name[i+1:]
	}
	if r.Method != http.MethodPost || !ok || rest != "invocations" || a.Invoke == nil {
		restError(w, http.StatusForbidden, "AccessDeniedException", "this AWS serves Invoke alone, not "+r.Method+" "+r.URL.Path)
		return
	}
	a.note(Call{callerOf(r), "lambda", "InvokeFunction"})
	if err := a.permit(callerOf(r), "lambda", "InvokeFunction"); err != nil {
		restError(w, http.StatusForbidden, "AccessDeniedException", err.Error())
		return
	}
	body, err := readAll(r)
	if err != nil {
		restError(w, http.StatusBadRequest, "InvalidRequestContentException", err.Error())
		return
	}
	event := r.Header.Get("X-Amz-Invocation-Type") == "Event"
	out, failed, err := a.Invoke(name, body, event)
	if err != nil {
		restError(w, http.StatusNotFound, "ResourceNotFoundException", err.Error())
		return
	}
	if failed {
		w.Header().Set("X-Amz-Function-Error", "Unhandled")
	}
	if event {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	w.Write(out)
}
