#!/usr/bin/env bash
# Asks EKS whether a cluster is one that the stack can be deployed for, before it is.
# usage: check.sh CLUSTER CONTEXT ('-c key=value -c key=value')
set -euo pipefail

cluster=$1 context=${2:-}
command -v aws >/dev/null || { echo "deploy: the AWS CLI is missing" >&2; exit 1; }

# value KEY DEFAULT: what the context says, in CONTEXT or in cdk.json.
value() {
  local found
  found=$(grep -oE "(^| )-c +'?$1=[^ ']*" <<<"$context" | tail -n1 | cut -d= -f2-) || true
  if [ -z "$found" ] && [ -r cdk.json ]; then
    found=$(sed -nE "s/.*\"$1\"[[:space:]]*:[[:space:]]*\"?([^\",}]*)\"?.*/\\1/p" cdk.json | tail -n1)
  fi
  echo "${found:-$2}"
}

if ! facts=$(aws eks describe-cluster --name "$cluster" --output text \
  --query 'cluster.[status, version, accessConfig.authenticationMode, resourcesVpcConfig.endpointPublicAccess, resourcesVpcConfig.publicAccessCidrs[0], resourcesVpcConfig.vpcId, resourcesVpcConfig.clusterSecurityGroupId]'); then
  echo "deploy: EKS does not describe cluster $cluster in this region and account (above: why)" >&2
  exit 1
fi
read -r status version mode public cidr vpc group <<<"$facts"

bad=0
say() { echo "deploy: $1" >&2; bad=1; }
case $status in ACTIVE | UPDATING) ;; *) say "cluster $cluster is $status: it has to be ACTIVE" ;; esac
minor=${version#1.}
if ! [[ $minor =~ ^[0-9]+$ ]] || [ "$minor" -lt 29 ]; then say "cluster $cluster has Kubernetes $version: 1.29 or newer is needed; upgrade it first"; fi
if [ "$mode" = CONFIG_MAP ] && [ "$(value access entries)" = entries ]; then
  say "cluster $cluster takes no access entries (authentication mode CONFIG_MAP). Either allow them:
    aws eks update-cluster-config --name $cluster --access-config authenticationMode=API_AND_CONFIG_MAP
  or deploy with CONTEXT='-c access=configMap' and follow its output AwsAuthRoles"
fi
if [ "$mode" = API ] && [ "$(value access entries)" = configMap ]; then say "cluster $cluster does not look into aws-auth (authentication mode API): deploy with access=entries"; fi
if [ -z "$(value vpcId '')" ] && { [ "$public" != True ] || [ "$cidr" != 0.0.0.0/0 ]; }; then
  say "the endpoint of cluster $cluster is not open to the world, and functions outside its VPC cannot reach it: deploy with
    CONTEXT='-c vpcId=$vpc -c clusterSecurityGroupId=$group -c subnetIds=PRIVATE,SUBNETS'   (and endpoints=true where they have no NAT)"
fi
# Lambda leaves at least 100 of the account's concurrency unreserved; the stack reserves 16.
source "$(dirname "$0")/stack.sh"
if [ "$(value planOnly false)" != true ] && [ "$(value sharedConcurrency false)" != true ] &&
  free=$(aws lambda get-account-settings --output text --query AccountLimit.UnreservedConcurrentExecutions 2>/dev/null) && [[ $free =~ ^[0-9]+$ ]] && [ "$free" -lt 116 ] &&
  ! aws cloudformation describe-stacks --stack-name "$(stack_of "$cluster")" >/dev/null 2>&1; then
  say "$free concurrent functions are unreserved in this account and region, and the stack reserves 16 of those above 100: deploy with
    CONTEXT='-c sharedConcurrency=true'
  or ask for more: aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384 --desired-value 1000"
fi
exit $bad
