package launch

import (
	"strings"

	"kerf.sh/kerf/internal/cloud/awserr"
)

// messageLimit is how much of a message a condition holds (Karpenter: 300 characters).
const messageLimit = 300

// reasonRule gives the reason and the blamed field of an error by its code or text.
type reasonRule struct {
	code, text    string // "" = any; text is compared in lower case
	reason, field string
}

// reasonRules are read in order; the first that matches wins (Karpenter: reasons of
// Launched=Unknown).
var reasonRules = []reasonRule{
	{code: "AuthFailure.ServiceLinkedRoleCreationNotPermitted", reason: "SpotSLRCreationFailed"},
	{text: "not authorized for images", reason: "AMIAuthorizationFailure", field: "spec.amiSelectorTerms"},
	{code: "UnauthorizedOperation", reason: "Unauthorized"},
	{code: "AccessDenied", reason: "Unauthorized"},
	{code: "AccessDeniedException", reason: "Unauthorized"},
	{text: "security group", code: "InvalidParameter", reason: "SecurityGroupSubnetVPCMismatch", field: "spec.securityGroupSelectorTerms"},
	{text: "belong to different networks", reason: "SecurityGroupSubnetVPCMismatch", field: "spec.securityGroupSelectorTerms"},
	{code: "InvalidGroup.NotFound", reason: "SecurityGroupNotFound", field: "spec.securityGroupSelectorTerms"},
	{code: "InvalidSecurityGroupID.NotFound", reason: "SecurityGroupNotFound", field: "spec.securityGroupSelectorTerms"},
	{code: "InvalidSubnetID.NotFound", reason: "SubnetNotFound", field: "spec.subnetSelectorTerms"},
	{text: "iam instance profile", reason: "InstanceProfileNameInvalid", field: "spec.role"},
	{text: "iaminstanceprofile", reason: "InstanceProfileNameInvalid", field: "spec.role"},
	{code: "InvalidLaunchTemplateName.NotFoundException", reason: "LaunchTemplateNotFound"},
	{code: "InvalidLaunchTemplateId.NotFound", reason: "LaunchTemplateNotFound"},
	{text: "user data is limited", reason: "UserDataSizeLimitExceeded", field: "spec.userData"},
	{code: "InvalidUserData.Malformed", reason: "UserDataSizeLimitExceeded", field: "spec.userData"},
	{code: "InvalidAMIID.Malformed", reason: "InvalidAMIID", field: "spec.amiSelectorTerms"},
	{code: "InvalidAMIID.NotFound", reason: "AMINotFound", field: "spec.amiSelectorTerms"},
	{code: "InvalidAMIID.Unavailable", reason: "AMINotFound", field: "spec.amiSelectorTerms"},
	{code: "InvalidBlockDeviceMapping", reason: "LaunchFailed", field: "spec.blockDeviceMappings"},
	{code: "InvalidKmsKey", reason: "LaunchFailed", field: "spec.blockDeviceMappings"},
	{text: "kms key", reason: "LaunchFailed", field: "spec.blockDeviceMappings"},
	{text: "snapshot", code: "InvalidSnapshot.NotFound", reason: "LaunchFailed", field: "spec.blockDeviceMappings"},
	{text: "architecture", reason: "LaunchFailed", field: "spec.amiSelectorTerms"},
	{text: "networkcardindex", reason: "LaunchFailed", field: "spec.networkInterfaces"},
	{text: "network interface", code: "InvalidParameterValue", reason: "LaunchFailed", field: "spec.networkInterfaces"},
	{text: "associatepublicipaddress", reason: "LaunchFailed", field: "spec.associatePublicIPAddress"},
	{text: "httptokens", reason: "LaunchFailed", field: "spec.metadataOptions"},
	{code: "InvalidPlacementGroup.Unknown", reason: "PlacementGroupNotFound", field: "spec.placementGroupSelector"},
	{text: "placement group", code: "InvalidParameterValue", reason: "LaunchFailed", field: "spec.placementGroupSelector"},
	{code: "TagLimitExceeded", reason: "LaunchFailed", field: "spec.tags"},
	{code: "InvalidTag", reason: "LaunchFailed", field: "spec.tags"},
	{code: "RequestLimitExceeded", reason: "RequestLimitExceeded"},
	{code: "InternalError", reason: "InternalError"},
	{text: "free tier", reason: "FreeTierIneligible"},
	{code: "MaxFleetCountExceeded", reason: "FleetQuotaExceeded"},
	{code: "PendingVerification", reason: "AccountPendingVerification"},
	{code: "MaxSpotInstanceCountExceeded", reason: "SpotQuotaExceeded"},
	{code: "VcpuLimitExceeded", reason: "VCPULimitExceeded"},
	{code: "InsufficientFreeAddressesInSubnet", reason: "InsufficientFreeAddressesInSubnet", field: "spec.subnetSelectorTerms"},
}

// failureOf reads one error.
func failureOf(e *awserr.Error) Failure {
	f := Failure{Kind: e.Kind, Code: e.Code, Message: e.Message, Reason: "LaunchFailed", Permission: e.Permission}
	lower := strings.ToLower(e.Message)
	for _, r := range reasonRules {
		if r.code != "" && !strings.HasPrefix(e.Code, r.code) || r.text != "" && !strings.Contains(lower, r.text) {
			continue
		}
		f.Reason, f.Field = r.reason, r.field
		break
	}
	if e.Permission != "" {
		f.Message = e.Error()
	}
	if f.Field != "" {
		f.Message = f.Field + ": " + f.Message
	}
	if len(f.Message) > messageLimit {
		f.Message = strings.ToValidUTF8(f.Message[:messageLimit], "")
	}
	return f
}
