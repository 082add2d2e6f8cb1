package handler

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestPayloadOfWrongTypes(t *testing.T) {
	for _, tc := range []struct{ payload, want string }{
		{`[]`, "read the payload: want an object, not a JSON array"},
		{`"plan"`, "read the payload: want an object, not a JSON string"},
		{`{"mode": 3}`, "read the payload: mode: want a string, not a JSON number"},
		{`{"objects": {}}`, "read the payload: objects: want a list, not a JSON object"},
		{`{"seed": -1}`, "read the payload: seed: want a whole number, not a JSON number -1"},
		{`{"consolidate": "yes"}`, "read the payload: consolidate: want true or false, not a JSON string"},
		{`{"whatIf": "a"}`, "read the payload: whatIf: want a list, not a JSON string"},
		{`{"remove": [3]}`, "read the payload: remove"},
		{`{"now": "soon"}`, "read the payload: "},
		{`{} {}`, "read the payload: there is more after the JSON object"},
	} {
		_, err := decode(json.RawMessage(tc.payload))
		if err == nil || !strings.HasPrefix(err.Error(), tc.want) || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v, want %s", tc.payload, err, tc.want)
		}
	}
}
