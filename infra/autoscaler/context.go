package autoscaler

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"kerf.sh/kerf/internal/config"
)

// contextKeys are the keys of the CDK context that are not planner settings.
var contextKeys = []string{"cluster", "architecture", "logRetentionDays", "planMemoryMiB", "planTimeoutSeconds"}

// FromContext reads Props from CDK context (cdk.json, or -c key=value): the keys of
// Props, and every planner setting by its own key. Numbers may be text, as -c gives
// them. All mistakes are reported at once, an unknown key with the ones that exist;
// keys of the CDK itself (aws:..., @aws-cdk/...) are left alone.
func FromContext(context map[string]any) (Props, error) {
	settings := map[string]bool{}
	for _, s := range config.Table() {
		settings[s.Key] = s.Key != clusterVariable && s.Scope != config.Made
	}
	p := Props{Settings: map[string]string{}}
	var errs []error
	for _, key := range slices.Sorted(maps.Keys(context)) {
		value := context[key]
		var err error
		switch {
		case foreign(key):
		case key == "cluster":
			p.ClusterName, err = text(value)
		case key == "architecture":
			var s string
			s, err = text(value)
			p.Architecture = Architecture(s)
		case key == "logRetentionDays":
			p.LogRetentionDays, err = number(value)
		case key == "planMemoryMiB":
			p.PlanMemoryMiB, err = number(value)
		case key == "planTimeoutSeconds":
			p.PlanTimeoutSeconds, err = number(value)
		case settings[key]:
			p.Settings[key], err = text(value)
		default:
			err = unknownKey(settings)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("context key %s: %w", key, err))
		}
	}
	return p, errors.Join(errs...)
}

// clusterVariable is the setting that has a context key of its own.
const clusterVariable = "CLUSTER_NAME"

// foreign tells the keys that the CDK and its tools put there.
func foreign(key string) bool {
	for _, prefix := range []string{"aws:", "aws-cdk:", "@aws-cdk/", "cdk-", "availability-zones:", "vpc-provider:"} {
		if strings.HasPrefix(key, prefix) {
			return true
		}
	}
	return false
}

func unknownKey(settings map[string]bool) error {
	known := slices.Clone(contextKeys)
	for k, ok := range settings {
		if ok {
			known = append(known, k)
		}
	}
	slices.Sort(known[len(contextKeys):])
	return fmt.Errorf("not known; there are %s", strings.Join(known, ", "))
}

func text(v any) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), nil
	case json.Number:
		return v.String(), nil
	case bool:
		return strconv.FormatBool(v), nil
	}
	return "", fmt.Errorf("want one value, not %T", v)
}

func number(v any) (int, error) {
	s, err := text(v)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, fmt.Errorf("want a whole number, not %q", s)
	}
	if n == 0 {
		return 0, errors.New("0 is not possible")
	}
	return n, nil
}
