package packing

// Fill places pods on nodes that exist or are in flight and stops there.
func Fill(p *Problem) []Placed {
	s := newSolver(p)
	s.fillExisting()
	return s.placed
}

// fix books the placements that the problem brings along.
func (s *solver) fix() {
	for _, f := range s.p.Fixed {
		for r, need := range s.p.Classes[f.Class].Need {
			s.free[f.Node][r] -= int64(f.Count) * need
		}
		s.left[f.Class] -= f.Count
		s.carry(f.Node, f.Class, f.Count)
		s.placed = append(s.placed, f)
	}
}

// Take removes n pods of a class from the result and lists them as unplaced; launches
// that hold nothing else go too.
func (r *Result) Take(p *Problem, class, n int) {
	total := n
	for i := len(r.Launches) - 1; i >= 0 && n > 0; i-- {
		l := &r.Launches[i]
		for k := range l.Contents {
			if c := &l.Contents[k]; c.Class == class {
				take := min(n, c.Count)
				n -= take
				cc := append([]ClassCount(nil), l.Contents...)
				if cc[k].Count -= take; cc[k].Count == 0 {
					cc = append(cc[:k], cc[k+1:]...)
				}
				l.Contents = cc
				break
			}
		}
		if len(l.Contents) == 0 {
			r.Price -= p.Templates[l.Template].Offers[l.Chosen].Price
			r.Launches = append(r.Launches[:i:i], r.Launches[i+1:]...)
		}
	}
	for i := len(r.Placed) - 1; i >= 0 && n > 0; i-- {
		if pl := &r.Placed[i]; pl.Class == class {
			take := min(n, pl.Count)
			n -= take
			if pl.Count -= take; pl.Count == 0 {
				r.Placed = append(r.Placed[:i:i], r.Placed[i+1:]...)
			}
		}
	}
	for i := range r.Unplaced {
		if r.Unplaced[i].Class == class {
			r.Unplaced[i].Count += total - n
			return
		}
	}
	r.Unplaced = append(r.Unplaced, Unplaced{Class: class, Count: total - n})
}
