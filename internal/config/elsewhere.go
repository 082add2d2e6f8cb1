package config

// elsewhere lists the settings of Karpenter that Kerf does not take, with the
// reason. They are refused by name, so that a pasted configuration is never half
// applied in silence.
func elsewhere() map[string]string {
	const controller = "it tunes a controller process, and Kerf has none; leave it out"
	const later = "the part of Kerf that it would change is not there yet"
	return map[string]string{
		"IGNORE_DRA_REQUESTS":                 "pods with resource claims are always left out and named; leave it out",
		"AWS_FEATURE_GATES":                   later,
		"SCHEDULER_CONFIG":                    later,
		"CPU_REQUESTS":                        controller,
		"MEMORY_LIMIT":                        controller,
		"KUBE_CLIENT_QPS":                     controller,
		"KUBE_CLIENT_BURST":                   controller,
		"METRICS_PORT":                        controller,
		"HEALTH_PROBE_PORT":                   controller,
		"ENABLE_PROFILING":                    controller,
		"DISABLE_LEADER_ELECTION":             controller,
		"LEADER_ELECTION_NAME":                controller,
		"LEADER_ELECTION_NAMESPACE":           controller,
		"DISABLE_CONTROLLER_WARMUP":           controller,
		"DISABLE_CLUSTER_STATE_OBSERVABILITY": controller,
		"LOG_OUTPUT_PATHS":                    controller,
		"LOG_ERROR_OUTPUT_PATHS":              controller,
		"KARPENTER_SERVICE":                   controller,
		"CLUSTER_ENDPOINT":                    later,
		"CLUSTER_CA_BUNDLE":                   later,
		"EKS_CONTROL_PLANE":                   later,
		"INTERRUPTION_QUEUE":                  "the stack makes the queue and its rules, and they are always on; leave it out",
		"DISABLE_DRY_RUN":                     later,
		"ENABLE_ZONAL_SHIFT":                  later,
		"AMI_REFRESH_INTERVAL":                later,
		"SUBNET_REFRESH_INTERVAL":             later,
	}
}
