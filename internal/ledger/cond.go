package ledger

import (
	"strconv"
	"strings"
)

type op byte

const (
	opAbsent op = iota + 1
	opExists
	opEq
	opLess
	opAtMost
	opAtLeast
	opAll
	opAny
)

// Cond is what must hold of a row as it is stored when a write is applied. A comparison
// with an attribute that is missing, or of another kind, does not hold.
type Cond struct {
	op   op
	attr string
	val  Value
	sub  []Cond
}

// Absent holds when the row has no such attribute, or is not there.
func Absent(attr string) Cond { return Cond{op: opAbsent, attr: attr} }

// Exists holds when the row has the attribute.
func Exists(attr string) Cond { return Cond{op: opExists, attr: attr} }

// Eq holds when the attribute has the value.
func Eq(attr string, v Value) Cond { return Cond{op: opEq, attr: attr, val: v} }

// Less holds when the attribute is a number below n.
func Less(attr string, n int64) Cond { return Cond{op: opLess, attr: attr, val: N(n)} }

// AtMost holds when the attribute is a number not above n.
func AtMost(attr string, n int64) Cond { return Cond{op: opAtMost, attr: attr, val: N(n)} }

// AtLeast holds when the attribute is a number not below n.
func AtLeast(attr string, n int64) Cond { return Cond{op: opAtLeast, attr: attr, val: N(n)} }

// All holds when all of its conditions do. All() always holds.
func All(sub ...Cond) Cond { return Cond{op: opAll, sub: sub} }

// Any holds when one of its conditions does.
func Any(sub ...Cond) Cond { return Cond{op: opAny, sub: sub} }

// none reports whether there is nothing to check.
func (c Cond) none() bool { return c.op == 0 || c.op == opAll && len(c.sub) == 0 }

// holds evaluates the condition on a row; nil is a row that is not there.
func (c Cond) holds(it Item) bool {
	v, there := it[c.attr]
	switch c.op {
	case opAbsent:
		return !there
	case opExists:
		return there
	case opEq:
		return there && v.Equal(c.val)
	case opLess:
		return there && v.kind == kindNumber && v.n < c.val.n
	case opAtMost:
		return there && v.kind == kindNumber && v.n <= c.val.n
	case opAtLeast:
		return there && v.kind == kindNumber && v.n >= c.val.n
	case opAny:
		for _, s := range c.sub {
			if s.holds(it) {
				return true
			}
		}
		return false
	default:
		for _, s := range c.sub {
			if !s.holds(it) {
				return false
			}
		}
		return true
	}
}

// expression writes conditions and updates in DynamoDB's language. Names and values are
// placeholders, so that an attribute may be called anything.
type expression struct {
	names  map[string]string // attribute -> placeholder
	values []Value
}

func (e *expression) name(attr string) string {
	if p, ok := e.names[attr]; ok {
		return p
	}
	if e.names == nil {
		e.names = map[string]string{}
	}
	p := "#n" + strconv.Itoa(len(e.names))
	e.names[attr] = p
	return p
}

func (e *expression) value(v Value) string {
	e.values = append(e.values, v)
	return ":v" + strconv.Itoa(len(e.values)-1)
}

func (e *expression) cond(c Cond) string {
	switch c.op {
	case opAbsent:
		return "attribute_not_exists(" + e.name(c.attr) + ")"
	case opExists:
		return "attribute_exists(" + e.name(c.attr) + ")"
	case opEq:
		return e.name(c.attr) + " = " + e.value(c.val)
	case opLess:
		return e.name(c.attr) + " < " + e.value(c.val)
	case opAtMost:
		return e.name(c.attr) + " <= " + e.value(c.val)
	case opAtLeast:
		return e.name(c.attr) + " >= " + e.value(c.val)
	}
	word := " AND "
	if c.op == opAny {
		word = " OR "
	}
	var parts []string
	for _, s := range c.sub {
		if s.none() {
			continue
		}
		p := e.cond(s)
		if (s.op == opAll || s.op == opAny) && len(s.sub) > 1 && len(c.sub) > 1 {
			p = "(" + p + ")"
		}
		parts = append(parts, p)
	}
	return strings.Join(parts, word)
}
