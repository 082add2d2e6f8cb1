package packing

// pour fills what is left of the room, each time with the class that is worth the most
// for what it takes of the room that there still is; it returns the worth put.
func (f *filler) pour(b int, pi []float64, skip int32) float64 {
	d := f.g.d
	v := 0.0
	for r, k := range f.left {
		f.share[r] = 0
		if k > 0 {
			f.share[r] = 1 / float64(k)
		}
	}
	list := f.list[:0]
	for _, c := range f.order[b] {
		if pi[c] > 0 && c != skip && f.room(c) > 0 {
			list = append(list, c)
		}
	}
	f.list = list
	for len(list) > 0 {
		best, at := 0.0, -1
		kept := list[:0]
		for _, c := range list {
			if f.room(c) == 0 {
				continue
			}
			w := 1e-12
			for r, need := range f.g.need[int(c)*d : (int(c)+1)*d] {
				w += float64(float64(need) * f.share[r])
			}
			if e := pi[c] / w; e > best {
				best, at = e, len(kept)
			}
			kept = append(kept, c)
		}
		list = kept
		if at < 0 {
			break
		}
		c := list[at]
		n := (f.room(c) + 3) / 4
		f.put(c, n)
		v += float64(float64(n) * pi[c])
		for r, k := range f.left {
			f.share[r] = 0
			if k > 0 {
				f.share[r] = 1 / float64(k)
			}
		}
	}
	return v
}

// shake looks for contents of bin b worth more than goal harder than fill: from the
// room poured full, it takes a pod or two of a class out and pours again, while that
// helps. It returns their worth, which out then holds.
func (f *filler) shake(b int, pi []float64, goal float64) float64 {
	if !f.settle(b, pi, goal) {
		return 0
	}
	f.empty(b)
	v := f.pour(b, pi, -1)
	for again := true; again; {
		again = false
		for _, c := range f.order[b] {
			for n := int32(1); n <= 2 && f.cur[c] >= n; n++ {
				f.save()
				f.put(c, -n)
				w := v - float64(float64(n)*pi[c])
				w += f.pour(b, pi, c)
				if w > v*(1+1e-6) {
					v, again = w, true
				} else {
					f.restore()
				}
			}
		}
	}
	copy(f.out, f.cur)
	return v
}

func (f *filler) save() {
	copy(f.saved.cur, f.cur)
	copy(f.saved.left, f.left)
	copy(f.saved.spare, f.spare)
}

func (f *filler) restore() {
	copy(f.cur, f.saved.cur)
	copy(f.left, f.saved.left)
	copy(f.spare, f.saved.spare)
}
