// Package telemetry owns how a function says what it does: log lines in JSON as Lambda
// knows them, and one line per invocation that is its summary and carries its metrics. It
// refuses to own what is measured (report) and what is worth a line (whoever logs).
//
//	{"timestamp":"...","level":"INFO","message":"summary","requestId":"...","Cluster":"prod","Function":"sweep",
//	 "TickSuccess":1,"PendingPods":0,"seconds":0.041,"calls":{"kube.GET":1},"_aws":{...}}
//
// There is no library for the embedded metric format here: it is this line.
package telemetry
