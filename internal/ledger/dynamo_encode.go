package ledger

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// Rows have three kinds of attributes, so they are converted here and not by the SDK's
// attributevalue, which finds out by reflection.

func encode(v Value) types.AttributeValue {
	switch v.kind {
	case kindString:
		return &types.AttributeValueMemberS{Value: v.s}
	case kindNumber:
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(v.n, 10)}
	default:
		return &types.AttributeValueMemberB{Value: v.b}
	}
}

func encodeItem(it Item) map[string]types.AttributeValue {
	out := make(map[string]types.AttributeValue, len(it))
	for name, v := range it {
		out[name] = encode(v)
	}
	return out
}

func keyOf(k Key) map[string]types.AttributeValue {
	return map[string]types.AttributeValue{attrPK: encode(S(k.PK)), attrSK: encode(S(k.SK))}
}

// decodeItem reads a row. An attribute of another kind than ours is somebody else's, put
// there by hand: it is refused by name, because writing the row would lose it.
func decodeItem(raw map[string]types.AttributeValue) (Item, error) {
	out := make(Item, len(raw))
	for name, v := range raw {
		switch v := v.(type) {
		case *types.AttributeValueMemberS:
			out[name] = S(v.Value)
		case *types.AttributeValueMemberN:
			n, err := strconv.ParseInt(v.Value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("read the attribute %s of %s: %q is not a whole number", name, keyText(raw), v.Value)
			}
			out[name] = N(n)
		case *types.AttributeValueMemberB:
			out[name] = B(v.Value)
		default:
			return nil, fmt.Errorf("read the attribute %s of %s: %T is not a string, number or binary: remove what was put there by hand", name, keyText(raw), v)
		}
	}
	return out, nil
}

func keyText(raw map[string]types.AttributeValue) string {
	pk, _ := raw[attrPK].(*types.AttributeValueMemberS)
	sk, _ := raw[attrSK].(*types.AttributeValueMemberS)
	if pk == nil || sk == nil {
		return "a row"
	}
	return pk.Value + "/" + sk.Value
}

func decodeOld(raw map[string]types.AttributeValue) (Item, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	return decodeItem(raw)
}

// when is a condition expression; nil without a condition.
func (e *expression) when(c Cond) *string {
	if c.none() {
		return nil
	}
	text := e.cond(c)
	return &text
}

// update is an update expression.
func (e *expression) update(w Write) *string {
	var parts []string
	clause := func(word string, items []string) {
		if len(items) > 0 {
			parts = append(parts, word+" "+strings.Join(items, ", "))
		}
	}
	var set, add, remove []string
	for _, name := range slices.Sorted(maps.Keys(w.Set)) {
		set = append(set, e.name(name)+" = "+e.value(w.Set[name]))
	}
	for _, name := range slices.Sorted(maps.Keys(w.Add)) {
		add = append(add, e.name(name)+" "+e.value(N(w.Add[name])))
	}
	for _, name := range w.Remove {
		remove = append(remove, e.name(name))
	}
	clause("SET", set)
	clause("ADD", add)
	clause("REMOVE", remove)
	text := strings.Join(parts, " ")
	return &text
}

// nameMap and valueMap are what the placeholders stand for; they are read after the
// expressions were written. nil when there are none, as DynamoDB wants it.
func (e *expression) nameMap() map[string]string {
	if len(e.names) == 0 {
		return nil
	}
	out := make(map[string]string, len(e.names))
	for attr, p := range e.names {
		out[p] = attr
	}
	return out
}

func (e *expression) valueMap() map[string]types.AttributeValue {
	if len(e.values) == 0 {
		return nil
	}
	out := make(map[string]types.AttributeValue, len(e.values))
	for i, v := range e.values {
		out[":v"+strconv.Itoa(i)] = encode(v)
	}
	return out
}
