package packing

import (
	"iter"
	"math/bits"
)

// Bitset is a set of small integers.
type Bitset []uint64

// NewBitset returns an empty set for n members.
func NewBitset(n int) Bitset { return make(Bitset, (n+63)/64) }

// Set adds i.
func (b Bitset) Set(i int) { b[i>>6] |= 1 << (uint(i) & 63) }

// Clear removes i.
func (b Bitset) Clear(i int) { b[i>>6] &^= 1 << (uint(i) & 63) }

// Has reports whether i is a member; false beyond the end.
func (b Bitset) Has(i int) bool {
	return i>>6 < len(b) && b[i>>6]&(1<<(uint(i)&63)) != 0
}

// Empty reports whether there is no member.
func (b Bitset) Empty() bool {
	for _, w := range b {
		if w != 0 {
			return false
		}
	}
	return true
}

// Count is the number of members.
func (b Bitset) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// And sets b to its intersection with o and reports whether anything is left.
func (b Bitset) And(o Bitset) bool {
	any := uint64(0)
	for i := range b {
		if i < len(o) {
			b[i] &= o[i]
		} else {
			b[i] = 0
		}
		any |= b[i]
	}
	return any != 0
}

// Clone copies the set.
func (b Bitset) Clone() Bitset { return append(Bitset(nil), b...) }

// Intersects reports whether the sets share a member.
func (b Bitset) Intersects(o Bitset) bool {
	for i := range b {
		if i < len(o) && b[i]&o[i] != 0 {
			return true
		}
	}
	return false
}

// Subset reports whether every member of b is in o.
func (b Bitset) Subset(o Bitset) bool {
	for i := range b {
		w := b[i]
		if i < len(o) {
			w &^= o[i]
		}
		if w != 0 {
			return false
		}
	}
	return true
}

// Members calls f for each member in ascending order.
func (b Bitset) Members(f func(i int)) {
	for w, v := range b {
		for v != 0 {
			f(w<<6 + bits.TrailingZeros64(v))
			v &= v - 1
		}
	}
}

// All yields the members in ascending order.
func (b Bitset) All() iter.Seq[int] {
	return func(yield func(int) bool) {
		for w, v := range b {
			for v != 0 {
				if !yield(w<<6 + bits.TrailingZeros64(v)) {
					return
				}
				v &= v - 1
			}
		}
	}
}

// Common is what two sets share; nil when they share nothing.
func (b Bitset) Common(o Bitset) Bitset {
	if b == nil || o == nil || !b.Intersects(o) {
		return nil
	}
	out := b.Clone()
	for i := range out {
		out[i] &= o[i]
	}
	return out
}
