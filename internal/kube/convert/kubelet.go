package convert

// kubeletOf keeps what a pool says of the kubelet until the classes are known.
func (w *work) kubeletOf(k map[string]any, from string) {
	if _, ok := k["containerRuntime"]; ok {
		delete(k, "containerRuntime")
		w.lost(from+".containerRuntime", "containerd is the only one now; it is left out")
	}
	if len(k) > 0 {
		w.kubelet, w.kubeletFrom = k, from
	}
}

// placeKubelets gives classes what pools said of the kubelet. Pools of one class that say
// different things get a class each: a copy under the name of class and pool.
func placeKubelets(works []*work) {
	classes := map[string]*work{}
	for _, w := range works {
		if c := w.classObject(); c != nil {
			classes[nameOf(c)] = w
		}
	}
	// first is who decides what the class itself says: a pool without a word, else the first.
	first := map[string]*work{}
	for _, w := range works {
		if class := w.poolClass(); class != "" && (first[class] == nil || w.kubelet == nil && first[class].kubelet != nil) {
			first[class] = w
		}
	}
	for _, w := range works {
		if w.kubelet == nil {
			continue
		}
		owner := classes[w.class]
		if c := w.inlineClass(); c != nil {
			set(c, "spec.kubelet", w.kubelet)
			w.moved(w.kubeletFrom, "EC2NodeClass "+w.class+": spec.kubelet", "")
			continue
		}
		if owner == nil {
			w.lost(w.kubeletFrom, "it is spec.kubelet of EC2NodeClass %s now, which is not among these objects: put it there", w.class)
			continue
		}
		c := owner.classObject()
		have := get(c, "spec.kubelet")
		switch {
		case have != nil && equal(have, any(w.kubelet)):
		case have == nil && first[w.class].kubelet != nil && (first[w.class] == w || equal(first[w.class].kubelet, w.kubelet)):
			if !owner.old && len(owner.out) == 0 { // today's class, with an addition
				c = clone(owner.from).(map[string]any)
				owner.out = []Object{c}
			}
			set(c, "spec.kubelet", w.kubelet)
		default:
			name := w.class + "-" + nameOf(w.out[0])
			c = clone(c).(map[string]any)
			set(c, "metadata.name", name)
			set(c, "spec.kubelet", w.kubelet)
			w.out = append(w.out, c)
			set(w.out[0], "spec.template.spec.nodeClassRef.name", name)
			w.moved(w.kubeletFrom, "EC2NodeClass "+name+": spec.kubelet", "a class of its own: other pools of %s say something else", w.class)
			continue
		}
		w.moved(w.kubeletFrom, "EC2NodeClass "+w.class+": spec.kubelet", "")
	}
}

// classObject is the class that an object is or becomes; nil when it is none.
func (w *work) classObject() Object {
	o := w.from
	if len(w.out) > 0 {
		o = w.out[0]
	}
	if o["kind"] == "EC2NodeClass" && o["apiVersion"] == awsGroup+"/"+current {
		return o
	}
	return nil
}

// inlineClass is the class that was inside of a pool.
func (w *work) inlineClass() Object {
	if len(w.out) == 2 && w.out[1]["kind"] == "EC2NodeClass" {
		return w.out[1]
	}
	return nil
}

// poolClass is the name of the class that a pool has; "" when it is no pool.
func (w *work) poolClass() string {
	o := w.from
	if len(w.out) > 0 {
		o = w.out[0]
	}
	if o["kind"] != "NodePool" {
		return ""
	}
	name, _ := get(o, "spec.template.spec.nodeClassRef.name").(string)
	return name
}
