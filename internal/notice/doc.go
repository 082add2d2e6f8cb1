// Package notice tells others of decisions through an EventBridge bus. From there a rule
// brings them wherever people look: an SNS topic, a chat, a queue. It refuses to own what is
// decided (disruption, handler), and nothing depends on a notice that arrives.
//
//	source "kerf.sh", detail-type "Node Disruption", detail
//	{"cluster":"prod","command":"underutilized-3f...","phase":"Removing","reason":"Underutilized","nodePools":["general"],
//	 "nodes":["ip-10-0-1-7"],"detail":"other nodes have room for 4 pods","savingPerHour":0.096,"pricePerHour":31.2}
package notice
