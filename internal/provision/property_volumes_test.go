package provision_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"kerf.sh/kerf/internal/catalog"
	"kerf.sh/kerf/internal/plan"
	"kerf.sh/kerf/internal/snapshot"
	"kerf.sh/kerf/internal/worldtest"
)

// volumeWorld draws a world in which nearly every pod has volumes: in zones, by terms, by
// old labels, on one node; made by classes; own ones, shared ones, ones for one pod;
// of two drivers, on nodes that say what they attach and nodes that do not.
func volumeWorld(seed uint64) (w *worldtest.World, text string) {
	r := rand.New(rand.NewPCG(seed, 11))
	chance := func(n int) bool { return r.IntN(n) == 0 }
	one := func(of ...string) string { return of[r.IntN(len(of))] }
	zone := func() string { return one("z-a", "z-b", "z-c") }
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("catalog only=c5.large,c5.xlarge,m5.large volumes=%d", 1+r.IntN(4))
	line("pool general%s", one("", " zones=z-a,z-b", " captype=on-demand", " require=rack=r1|r2"))
	if chance(2) {
		line("pool more weight=10 zones=z-c types=c5.xlarge")
	}
	line("storageclass any")
	line("storageclass some %s", one("zones=z-a|z-c", "terms=zone=z-a;zone=z-b", "zones=z-b"))
	line("storageclass disks provisioner=disks.example.com")
	nodes := r.IntN(4)
	for i := range nodes {
		line("node n%d type=%s zone=%s pool=general%s", i, one("c5.large", "c5.xlarge"), zone(), one("", "", " taints=own:NoSchedule"))
		if !chance(4) {
			line("csinode n%d limits=ebs.csi.aws.com:%d%s", i, r.IntN(4), one("", ",disks.example.com:1", ",disks.example.com:2"))
		}
	}
	if chance(4) {
		line("claim c1 pool=general type=c5.large zone=%s captype=spot", zone())
	}
	claims := 0
	var names []string
	claim := func() string {
		claims++
		name := fmt.Sprintf("d%d", claims)
		names = append(names, name)
		where := one("zone="+zone(), "zone="+zone()+"|"+zone(), "terms=zone="+zone()+";zone="+zone(), "labels=failure-domain.beta.kubernetes.io/zone="+zone(),
			"labels=topology.kubernetes.io/zone="+zone()+"__"+zone(), "driver=disks.example.com zone="+zone(), "terms=rack=r2", "in-tree labels=topology.kubernetes.io/zone="+zone())
		if nodes > 0 && chance(12) {
			where = fmt.Sprintf("local terms=hostname=n%d", r.IntN(nodes))
		}
		mode := ""
		if chance(8) {
			mode = " modes=ReadWriteOncePod"
		}
		if chance(3) {
			line("pvc %s ns=default class=%s%s", name, one("any", "some", "disks"), mode)
		} else {
			line("pv v-%s %s", name, where)
			line("pvc %s ns=default volume=v-%s%s", name, name, mode)
		}
		return name
	}
	for i := range nodes {
		for k := range r.IntN(3) {
			name := claim()
			if chance(2) {
				line("pod r%d-%d cpu=50m node=n%d volume=%s%s", i, k, i, name, one("", "", "", " phase=Succeeded"))
			} else {
				line("attachment a%d-%d node=n%d volume=v-%s", i, k, i, name)
			}
		}
	}
	shared := claim()
	for i := range 2 + r.IntN(7) {
		opts := ""
		for range r.IntN(4) {
			switch {
			case chance(6):
				opts += " ephemeral=" + one("any", "some", "disks")
			case chance(4):
				opts += " volume=" + shared
			case chance(8):
				opts += " volume=" + names[r.IntN(len(names))]
			default:
				opts += " volume=" + claim()
			}
		}
		if chance(5) {
			opts += " affinity=" + one("zone=z-a;captype=on-demand", "zone!=z-b", "captype=spot")
		}
		line("pod p%d cpu=%dm mem=100Mi%s", i, 100+100*r.IntN(12), opts)
	}
	w = worldtest.NewWorld()
	if err := w.Exec(b.String()); err != nil {
		panic(b.String() + err.Error())
	}
	return w, b.String()
}

const volumeSeeds = 400

func volumesOf(t testing.TB, seed uint64) world {
	w, _ := volumeWorld(seed)
	return readWorld(t, w)
}

// No rule about volumes is broken: pods are where their volumes can be used, and no node
// attaches more than it can, whichever of its options a launch becomes. Pods that are
// left over fit nowhere.
func TestPropertyVolumes(t *testing.T) {
	failed := 0
	for seed := range uint64(volumeSeeds) {
		w, text := volumeWorld(seed)
		if bad := rules(readWorld(t, w), real); len(bad) > 0 {
			if failed++; failed < 4 {
				t.Errorf("seed %d:\n%s\n%s%s", seed, strings.Join(bad, "\n"), text,
					worldtest.Describe(real(readWorld(t, w).s, w.Catalog), worldtest.Show{Detail: true}))
			}
		}
	}
	if failed > 0 {
		t.Errorf("%d of %d worlds", failed, volumeSeeds)
	}
}

// The order of the input changes nothing there.
func TestPropertyVolumesOrder(t *testing.T) {
	for seed := range uint64(volumeSeeds / 8) {
		if bad := order(volumesOf(t, seed), real); len(bad) > 0 {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(bad, "\n"))
		}
	}
}

// Planners that know less of volumes than there is to know are caught, each by worlds
// that the right one plans well.
func TestVolumeMutantsAreCaught(t *testing.T) {
	claims := func(f func(*snapshot.PersistentVolumeClaim)) planner {
		return blindTo(func(s *snapshot.Snapshot) {
			s.Claims = slices.Clone(s.Claims)
			for i := range s.Claims {
				f(&s.Claims[i])
			}
		})
	}
	pvs := func(f func(*snapshot.PersistentVolume)) planner {
		return blindTo(func(s *snapshot.Snapshot) {
			s.Volumes = slices.Clone(s.Volumes)
			for i := range s.Volumes {
				f(&s.Volumes[i])
			}
		})
	}
	classes := func(f func(*snapshot.StorageClass)) planner {
		return blindTo(func(s *snapshot.Snapshot) {
			s.StorageClasses = slices.Clone(s.StorageClasses)
			for i := range s.StorageClasses {
				f(&s.StorageClasses[i])
			}
		})
	}
	more := func(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
		o := *c
		o.Types = slices.Clone(c.Types)
		for i := range o.Types {
			o.Types[i].Volumes++
		}
		return real(s, &o)
	}
	for _, m := range []struct {
		name   string
		mutant planner
	}{
		{"takes volumes to be everywhere", pvs(func(v *snapshot.PersistentVolume) { v.Required = nil })},
		{"reads the first term only", pvs(func(v *snapshot.PersistentVolume) { v.Required = v.Required[:min(1, len(v.Required))] })},
		{"ignores old labels", pvs(func(v *snapshot.PersistentVolume) { v.Labels = nil })},
		{"ignores where classes make volumes", classes(func(c *snapshot.StorageClass) { c.AllowedTopologies = nil })},
		{"ignores limits that nodes give", blindTo(func(s *snapshot.Snapshot) { s.CSINodes = nil })},
		{"ignores attachments", blindTo(func(s *snapshot.Snapshot) { s.Attachments = nil })},
		{"ignores volumes of running pods", blindTo(eachPod(func(p *snapshot.Pod) {
			if p.NodeName != "" {
				p.Spec.Volumes = nil
			}
		}))},
		{"believes in one slot more", more},
		{"shares claims of one pod", claims(func(c *snapshot.PersistentVolumeClaim) { c.Spec.AccessModes = []string{"ReadWriteOnce"} })},
		{"counts drivers together", pvs(func(v *snapshot.PersistentVolume) {
			if v.Driver != "" {
				v.Driver = "ebs.csi.aws.com"
			}
		})},
		{"counts a shared volume for every pod", apart},
		{"forgets volumes", blindTo(eachPod(func(p *snapshot.Pod) {
			if p.NodeName == "" {
				p.Spec.Volumes = nil
			}
		}))},
	} {
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			for seed := range uint64(volumeSeeds) {
				w := volumesOf(t, seed)
				if len(rules(w, m.mutant)) > 0 && len(rules(w, real)) == 0 {
					return
				}
			}
			t.Errorf("a planner that %s is not caught", m.name)
		})
	}
}

// apart is a planner that takes a volume for another one in every pod.
func apart(s *snapshot.Snapshot, c *catalog.Catalog) *plan.Plan {
	o := *s
	o.Pods, o.Claims, o.Volumes = slices.Clone(s.Pods), slices.Clone(s.Claims), slices.Clone(s.Volumes)
	for i := range o.Pods {
		p := &o.Pods[i]
		p.Spec.Volumes = slices.Clone(p.Spec.Volumes)
		for k := range p.Spec.Volumes {
			v := &p.Spec.Volumes[k]
			at := slices.IndexFunc(s.Claims, func(c snapshot.PersistentVolumeClaim) bool { return c.Name == v.Claim && c.Namespace == p.Namespace })
			if v.Claim == "" || at < 0 {
				continue
			}
			claim := s.Claims[at]
			claim.Name = v.Claim + "-" + p.Name
			if pv := slices.IndexFunc(s.Volumes, func(v snapshot.PersistentVolume) bool { return v.Name == claim.Spec.VolumeName }); pv >= 0 {
				volume := s.Volumes[pv]
				volume.Name += "-" + p.Name
				volume.Handle += "-" + p.Name
				claim.Spec.VolumeName = volume.Name
				o.Volumes = append(o.Volumes, volume)
			}
			o.Claims = append(o.Claims, claim)
			v.Claim = claim.Name
		}
	}
	o.Normalize()
	return real(&o, c)
}

// readWorld is a world of lines as the planner gets it.
func readWorld(t testing.TB, w *worldtest.World) world {
	s, _, err := w.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	return world{s: s, c: w.Catalog}
}
