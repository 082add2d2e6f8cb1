package ledger

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
)

// Names of the attributes of every row's key, and of its expiry in seconds since 1970.
const (
	attrPK  = "pk"
	attrSK  = "sk"
	attrTTL = "ttl"
)

// Key names a row.
type Key struct{ PK, SK string }

// String is "pk/sk".
func (k Key) String() string { return k.PK + "/" + k.SK }

type kind byte

const (
	kindString kind = iota + 1
	kindNumber
	kindBytes
)

// Value is the value of an attribute: a string, an integer or bytes. The zero Value is
// none of them and is stored nowhere.
type Value struct {
	kind kind
	s    string
	n    int64
	b    []byte
}

// S is a string.
func S(v string) Value { return Value{kind: kindString, s: v} }

// N is an integer.
func N(v int64) Value { return Value{kind: kindNumber, n: v} }

// B is bytes; the caller does not change them afterwards.
func B(v []byte) Value { return Value{kind: kindBytes, b: v} }

// Str is the string of a value, "" when it is none.
func (v Value) Str() string { return v.s }

// Int is the integer of a value, 0 when it is none.
func (v Value) Int() int64 { return v.n }

// Bytes are the bytes of a value, nil when it has none.
func (v Value) Bytes() []byte { return v.b }

// Equal reports whether two values are the same in kind and content.
func (v Value) Equal(o Value) bool {
	return v.kind == o.kind && v.s == o.s && v.n == o.n && bytes.Equal(v.b, o.b)
}

// size is what DynamoDB counts for a value, for numbers at most.
func (v Value) size() int {
	switch v.kind {
	case kindString:
		return len(v.s)
	case kindNumber:
		return len(strconv.FormatInt(v.n, 10))/2 + 2
	default:
		return len(v.b)
	}
}

// Item is a row: its attributes by name, the key among them. Whoever gets one owns it.
type Item map[string]Value

// Key is the key of the row.
func (it Item) Key() Key { return Key{it[attrPK].s, it[attrSK].s} }

// Size is what DynamoDB counts against the limit of 400 KB.
func (it Item) Size() int {
	n := 0
	for name, v := range it {
		n += len(name) + v.size()
	}
	return n
}

// Equal reports whether two rows have the same attributes.
func (it Item) Equal(o Item) bool { return maps.EqualFunc(it, o, Value.Equal) }

func (it Item) clone() Item {
	if it == nil {
		return nil
	}
	out := make(Item, len(it))
	for name, v := range it {
		v.b = slices.Clone(v.b)
		out[name] = v
	}
	return out
}
