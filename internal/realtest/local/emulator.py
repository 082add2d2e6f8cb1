"""Runs the emulator with what the stack needs of AWS and the emulator lacks.

Each change below names what is lacking. Nothing here knows anything of Kerf: it is AWS that
is made whole, and the stack's template goes in as it is.
"""
import json
import os
import time

from ministack import app
from ministack.core import iam_actions
from ministack.services import cloudwatch, eks, eventbridge, iam, lambda_svc, scheduler
from ministack.services.cloudformation import provisioners


def answered(answer, what):
    """The body of an answer of the emulator's own API; a refusal is raised."""
    status, _, body = answer
    parsed = json.loads(body or b"{}")
    if status >= 400:
        raise ValueError(f"{what}: {parsed.get('message', parsed)}")
    return parsed


# CloudFormation does not know AWS::EKS::AccessEntry. The EKS API does: the resource is made by it.
def access_entry(logical_id, props, stack_name):
    cluster, principal = props["ClusterName"], props["PrincipalArn"]
    entry = answered(eks._create_access_entry(cluster, {
        "principalArn": principal, "kubernetesGroups": props.get("KubernetesGroups") or [],
        "type": props.get("Type") or "STANDARD", "username": props.get("Username") or "",
    }), "create the access entry")["accessEntry"]
    for policy in props.get("AccessPolicies") or []:
        scope = policy["AccessScope"]
        answered(eks._associate_access_policy(cluster, principal, {
            "policyArn": policy["PolicyArn"], "accessScope": {"type": scope["Type"], "namespaces": scope.get("Namespaces") or []},
        }), "associate " + policy["PolicyArn"])
    return f"{principal}|{cluster}", {"AccessEntryArn": entry["accessEntryArn"]}


def access_entry_gone(physical_id, props):
    principal, cluster = physical_id.split("|")
    eks._delete_access_entry(cluster, principal)


provisioners._RESOURCE_HANDLERS["AWS::EKS::AccessEntry"] = {"create": access_entry, "delete": access_entry_gone}


# CloudFormation takes no alarm on an expression. It is kept with the metric that comes first in
# it, so that it is there to be looked at; it is never raised.
alarm_record = provisioners._cw_metric_alarm_record


def alarm(name, props):
    if not props.get("Metrics"):
        return alarm_record(name, props)
    first = next(m["MetricStat"] for m in props["Metrics"] if m.get("MetricStat"))
    rest = {k: v for k, v in props.items() if k != "Metrics"}
    out = alarm_record(name, {**rest, **first["Metric"], "Period": first["Period"], "Statistic": first["Stat"]})
    return {**out, "ActionsEnabled": False}


provisioners._cw_metric_alarm_record = alarm

# The scheduler puts no context attributes into a target's input, looks every ten seconds, and
# lets the first period of a rate go by, where AWS begins at once.
scheduler._SCHEDULE_TICK_INTERVAL = 1
create_schedule = scheduler._create_schedule


def at_once(name, body):
    answer = create_schedule(name, body)
    key = f"{body.get('GroupName', 'default')}/{name}"
    if answer[0] < 400 and body["ScheduleExpression"].startswith("rate("):
        state_key = next(k for k in scheduler._schedules._data if k[2] == key)
        scheduler._schedule_last_fired[state_key] = 0
    return answer


scheduler._create_schedule = at_once
invoke_target = eventbridge._invoke_target


def scheduled(target, event, rule, view=None):
    if event.get("Source") == "aws.scheduler" and target.get("Input"):
        at = int(event["Time"]) // 60 * 60
        text = target["Input"].replace("<aws.scheduler.scheduled-time>", time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at)))
        target = {**target, "Input": text.replace("<aws.scheduler.schedule-arn>", rule.get("Arn", ""))}
    return invoke_target(target, event, rule, view)


eventbridge._invoke_target = scheduled

# No client may send an event whose source is AWS. EC2 is outside the emulator here, and does.
put_events = eventbridge._put_events
eventbridge._put_events = lambda data, allow_aws_source=False: put_events(data, True)

# A cluster of the emulator is a container. Here it is one that runs already: its file says where,
# and the secret of the URL at which its API server asks who made a token.
create_cluster = eks._create_cluster


def existing_cluster(body, creator_arn=None):
    answer = create_cluster(body, creator_arn)
    if answer[0] >= 400:
        return answer
    with open(os.environ["EMULATOR_CLUSTER"]) as f:
        given = json.load(f)
    cluster = eks._clusters[body["name"]]
    cluster["_auth_token"] = given.pop("secret")
    cluster["resourcesVpcConfig"].update(given.pop("resourcesVpcConfig"))
    cluster.update(given)
    return 200, answer[1], json.dumps({"cluster": eks._sanitize(cluster)}).encode()


eks._create_cluster = existing_cluster
eks._cluster_endpoint = lambda port: json.load(open(os.environ["EMULATOR_CLUSTER"]))["endpoint"]
# Access policies are groups of the token's user; the cluster binds a ClusterRole to each.
eks._access_policy_group = lambda cluster, principal, policy: "eks:" + eks._access_policy_name(policy)

# Lambda counts direct calls alone, and CloudWatch reads no metrics from log lines. Both are done
# where the emulator writes the log of an invocation.
emit_logs = lambda_svc._emit_lambda_logs


def emit(func, request_id, log_text, error, duration_ms, **more):
    emit_logs(func, request_id, log_text, error, duration_ms, **more)
    name = (func.get("config") or func)["FunctionName"]
    of = {"FunctionName": name}
    cloudwatch.record_metric("AWS/Lambda", "Invocations", 1, "Count", of)
    cloudwatch.record_metric("AWS/Lambda", "Errors", 1 if error else 0, "Count", of)
    cloudwatch.record_metric("AWS/Lambda", "Duration", duration_ms, "Milliseconds", of)
    for line in (log_text or "").splitlines():
        if '"_aws"' in line:
            embedded(line)


def embedded(line):
    """The metrics of one line in the embedded metric format."""
    try:
        doc = json.loads(line)
    except ValueError:
        return
    for directive in doc["_aws"]["CloudWatchMetrics"]:
        for dimensions in directive["Dimensions"]:
            for metric in directive["Metrics"]:
                values = doc[metric["Name"]]
                for value in values if isinstance(values, list) else [values]:
                    cloudwatch.record_metric(directive["Namespace"], metric["Name"], value, metric.get("Unit", "None"), {d: doc[d] for d in dimensions})


lambda_svc._emit_lambda_logs = emit
emit_metrics = lambda_svc._emit_lambda_metrics
lambda_svc._emit_lambda_metrics = lambda name, duration_ms, error, throttle: throttle and emit_metrics(name, duration_ms, error, throttle)

# What a policy is asked is not always what AWS asks it. A batch of SQS is allowed by the
# permission for one message; what is done with an instance profile is done to that; conditions
# see what EKS and IAM say of a request and of its resource. TLS ends in front of an emulator.
iam_action_of, resource_of, context_of = iam_actions.extract_iam_action, iam_actions.extract_resource_arn, iam_actions.request_tag_context


def action(service, method, path, headers, body, params):
    out = iam_action_of(service, method, path, headers, body, params)
    return out.removesuffix("Batch") if out and service == "sqs" else out


def resource(service, method, path, headers, body, params, region, account):
    profile = iam_actions._query_param(params, "InstanceProfileName")
    if service == "iam" and profile:
        return iam.instance_profile_arn(profile, "/")
    return resource_of(service, method, path, headers, body, params, region, account)


def context(service, asked, body, params):
    out = context_of(service, asked, body, params)
    if asked == "eks:CreateAccessEntry":
        entry = json.loads(body)
        out |= {"eks:principalArn": entry["principalArn"], "eks:accessEntryType": entry.get("type", "STANDARD")}
    profile = iam._instance_profiles.get(iam_actions._query_param(params, "InstanceProfileName")) if service == "iam" else None
    for tag in profile["Tags"] if profile else []:
        out["aws:ResourceTag/" + tag["Key"]] = tag["Value"]
    return out


iam_actions.extract_iam_action, iam_actions.extract_resource_arn, iam_actions.request_tag_context = action, resource, context
iam_actions._TAG_OPERATIONS["iam"] = frozenset({"CreateInstanceProfile", "TagInstanceProfile"})
pin_origin = app.pin_request_origin
app.pin_request_origin = lambda address, secure: pin_origin(address, True)

if __name__ == "__main__":
    app.main()
