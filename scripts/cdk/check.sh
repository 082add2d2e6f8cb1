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
exit $bad
