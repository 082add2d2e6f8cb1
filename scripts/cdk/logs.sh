#!/usr/bin/env bash
# Prints what a deployed function said lately.
# usage: logs.sh CLUSTER FUNCTION SINCE
set -euo pipefail

cluster=$1 fn=$2 since=$3
case $fn in
  plan | sweep | lifecycle | catalog | interruption | consolidation | bootstrap | prices) ;;
  *) echo "logs: there is no function $fn; there are plan, sweep, lifecycle, catalog, interruption, consolidation, bootstrap" >&2; exit 2 ;;
esac
command -v aws >/dev/null || { echo "logs: the AWS CLI is missing" >&2; exit 1; }
case $(aws --version 2>&1) in aws-cli/1.*) echo "logs: version 2 of the AWS CLI is needed: version 1 has no 'aws logs tail'" >&2; exit 1 ;; esac
source "$(dirname "$0")/stack.sh"

stack=$(stack_of "$cluster")
group=$(output_of "$stack" "${fn^}LogGroup")
if [ -z "$group" ]; then echo "logs: stack $stack has no function $fn" >&2; exit 1; fi
exec aws logs tail "$group" --since "$since" --format short
