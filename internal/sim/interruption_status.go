package sim

import "kerf.sh/kerf/internal/cloud/ec2fake"

// ails lets a check of an instance fail, or has EC2 plan something with it: it says so to
// those who ask, and to nobody else.
func (b *bus) ails(i *ec2fake.Instance) {
	switch d := b.dice; d.IntN(3) {
	case 0:
		b.impaired[i.ID] = ailment{since: b.w.now()}
	case 1:
		b.impaired[i.ID] = ailment{system: true, since: b.w.now()}
	case 2:
		b.planned[i.ID] = pick(d, []string{"instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop"})
	}
	b.w.tracef("instance %s ails: %+v %q", i.ID, b.impaired[i.ID], b.planned[i.ID])
}
