package sim

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"kerf.sh/kerf/internal/cloud/ec2fake"
	"kerf.sh/kerf/internal/interruption"
)

// bus is EventBridge with the rules of the stack, and what EC2 and Health have to say of
// instances. Every event comes at least once.
type bus struct {
	w     *World
	dice  dice
	queue *mailbox
	n     int
	// sent are the events by the id of their message, of those that name an instance.
	sent map[string]*notice
	of   map[string][]*notice
	// warned are instances that will be taken, strangers those that EC2 knows and that are
	// not the cluster's.
	warned, strangers map[string]bool
	// impaired are instances whose checks fail, since when; planned those that EC2 wants to
	// do something with.
	impaired map[string]ailment
	planned  map[string]plannedEvent
}

// notice is one event, and what is to come of it.
type notice struct {
	kind interruption.Kind
	body string
	// due is what has to come of it.
	due       due
	instances []string
	at        time.Time
	deadline  time.Time // zero = it names none
	// copies are the messages that carry it, over those of them that are no more.
	copies, over int
}

// due is what has to come of a notice.
type due int

const (
	dueAct     due = iota // every instance of ours is on its way out
	dueAsked              // the same, where a pool asked for it
	dueNothing            // it is of no concern
	dueAside              // it cannot be read, and is put aside
)

func newBus(w *World) *bus {
	b := &bus{w: w, dice: newDice(w.Seed, "bus"), sent: map[string]*notice{}, of: map[string][]*notice{}, warned: map[string]bool{},
		strangers: map[string]bool{}, impaired: map[string]ailment{}, planned: map[string]plannedEvent{}}
	w.aws.ec2.Statuses = b.statuses
	return b
}

// drawNotices draws what AWS says of instances. It comes after all else, and from other dice:
// what the same seed drew before there were notices is the same with them.
func drawNotices(d dice, p *Profile) {
	f := &p.Faults
	f.Warn, f.Notices, f.States = pick(d, []int{0, 700_000, 1_000_000, 1_000_000}), pick(d, []int{0, 300_000, 600_000, 1_000_000}), d.IntN(3) > 0
	p.Wide = d.IntN(4) == 0
	for i := range p.Pools {
		p.Pools[i].Rebalance = d.IntN(3) == 0
	}
	for i := range p.Loads {
		l := &p.Loads[i]
		if d.IntN(3) == 0 {
			l.Grace = pick(d, []int64{1, 5, 60, 100, 300})
		}
		switch d.IntN(4) {
		case 0: // it is over by itself some time
			l.Hold = pick(d, []string{"90s", "4m", "10m", "soon"})
		case 1:
			if l.Gone > 0 {
				l.Hold, l.Left = "true", 0
			}
		}
	}
}

// event publishes an event: one object of JSON.
func (b *bus) event(n *notice, source, detailType string, detail map[string]any) {
	b.n++
	n.at = b.w.now().Truncate(time.Second)
	raw, err := json.Marshal(map[string]any{
		"version": "0", "id": fmt.Sprintf("event-%d", b.n), "source": source, "detail-type": detailType, "account": "111122223333", "region": region,
		"time": n.at.Format(time.RFC3339), "resources": []string{}, "detail": detail,
	})
	if err != nil {
		panic(err)
	}
	n.body = string(raw)
	if b.dice.IntN(8) == 0 { // some people have SNS in between
		wrapped, err := json.Marshal(map[string]string{"Type": "Notification", "MessageId": fmt.Sprintf("sns-%d", b.n), "Message": n.body})
		if err != nil {
			panic(err)
		}
		n.body = string(wrapped)
	}
	b.publish(n)
}

// publish brings a body to the queue, as a rule once.
func (b *bus) publish(n *notice) {
	w := b.w
	for _, id := range n.instances {
		b.of[id] = append(b.of[id], n)
	}
	copies := 1
	if w.faults && b.dice.in(w.Profile.Faults.Duplicate) {
		copies += b.dice.upTo(2)
	}
	w.stats.Notices++
	for range copies {
		w.after(b.dice.between(10*time.Millisecond, 900*time.Millisecond), func() {
			before := len(b.queue.messages)
			id := b.queue.put(n.body, 0)
			b.sent[id] = n
			n.copies += len(b.queue.messages) - before
			w.tracef("notice %s: %s %v until %s", id, n.kind, n.instances, sinceEpoch(n.deadline))
		})
	}
}

func sinceEpoch(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Sub(epoch).String()
}

// take has EC2 take a spot instance: as a rule with a warning.
func (b *bus) take(i *ec2fake.Instance) {
	if b.warned[i.ID] {
		return
	}
	if !b.dice.in(b.w.Profile.Faults.Warn) {
		b.w.tracef("spot instance %s is taken", i.ID)
		b.end(i)
		return
	}
	b.warn(i)
}

// warn has EC2 say that it takes a spot instance, and take it two minutes later.
func (b *bus) warn(i *ec2fake.Instance) {
	b.warned[i.ID] = true
	n := &notice{kind: interruption.SpotInterrupted, instances: []string{i.ID}}
	n.deadline = b.w.now().Truncate(time.Second).Add(2 * time.Minute)
	b.event(n, "aws.ec2", "EC2 Spot Instance Interruption Warning", map[string]any{"instance-id": i.ID, "instance-action": "terminate"})
	b.w.after(2*time.Minute, func() { b.end(i) })
}

// end ends an instance from AWS's side.
func (b *bus) end(i *ec2fake.Instance) {
	if !i.ShuttingFrom.IsZero() {
		return
	}
	b.w.checks.overdue(i.ID)
	b.w.aws.ec2.Interrupt(i.ID)
	b.w.checks.taken(i.ID)
	b.w.cluster.watchMachines()
}

// begins and ends tell of states, whoever wanted the change.
func (b *bus) begins(i *ec2fake.Instance) {
	if b.w.Profile.Faults.States {
		b.state(i, "pending")
		b.w.at(i.RunningFrom, func() { b.state(i, "running") })
	}
}

func (b *bus) ends(i *ec2fake.Instance) {
	if b.w.Profile.Faults.States {
		b.state(i, "shutting-down")
		b.w.after(30*time.Second, func() { b.state(i, "terminated") })
	}
}

func (b *bus) state(i *ec2fake.Instance, state string) {
	n := &notice{instances: []string{i.ID}, due: dueNothing}
	if state == "shutting-down" || state == "terminated" {
		n.kind, n.due, n.deadline = interruption.InstanceTerminated, dueAct, b.w.now().Truncate(time.Second)
	}
	b.event(n, "aws.ec2", "EC2 Instance State-change Notification", map[string]any{"instance-id": i.ID, "state": state})
}

// minute lets AWS have something to say.
func (b *bus) minute() {
	if d := b.dice; d.in(b.w.Profile.Faults.Notices) {
		for range d.upTo(2) {
			b.say()
		}
	}
}

// say lets AWS say one thing.
func (b *bus) say() {
	w, d := b.w, b.dice
	var alive, young []*ec2fake.Instance
	for _, i := range w.aws.ec2.Instances() {
		if i.ShuttingFrom.IsZero() {
			alive = append(alive, i)
			if w.cluster.machines[i.ID].node == "" {
				young = append(young, i)
			}
		}
	}
	what := d.IntN(9)
	if len(alive) == 0 {
		what = 6 + what%3
	}
	switch what {
	case 0:
		i := pick(d, alive)
		n := &notice{kind: interruption.RebalanceRecommended, instances: []string{i.ID}, due: dueAsked}
		b.event(n, "aws.ec2", "EC2 Instance Rebalance Recommendation", map[string]any{"instance-id": i.ID})
	case 1, 2:
		b.health(alive)
	case 3:
		i := pick(d, alive)
		n := &notice{kind: interruption.ReservationInterrupted, instances: []string{i.ID}, deadline: w.now().Truncate(time.Second).Add(2 * time.Minute)}
		b.event(n, "aws.ec2", "EC2 Capacity Reservation Instance Interruption Warning", map[string]any{"instance-id": i.ID, "instance-action": "terminate"})
		w.after(2*time.Minute, func() { b.end(i) })
	case 4:
		if len(young) > 0 {
			alive = young
		}
		b.warn(pick(d, alive))
	case 5:
		b.ails(pick(d, alive))
	case 6:
		b.foreign()
	case 7: // who it is, nobody knows
		n := &notice{kind: interruption.SpotInterrupted, instances: []string{fmt.Sprintf("i-%017x", d.Uint64()>>8)}, deadline: w.now().Truncate(time.Second).Add(2 * time.Minute)}
		b.event(n, "aws.ec2", "EC2 Spot Instance Interruption Warning", map[string]any{"instance-id": n.instances[0], "instance-action": "terminate"})
	case 8:
		n := &notice{body: pick(d, wrongShapes), due: dueAside}
		b.publish(n)
	}
}

// wrongShapes are bodies that are no events.
var wrongShapes = []string{
	"", "{}", "[]", "null", `"`, `{"detail-type":"x"}`, `{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{}}`,
	`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":{"instance-id":"i-XYZ!"}}`,
	`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","time":"yesterday","detail":{"instance-id":"i-0123456789abcdef0"}}`,
	`{"Type":"Notification","Message":"{"}`,
	`{"source":"aws.ec2","detail-type":"EC2 Spot Instance Interruption Warning","detail":` + strings.Repeat("[", 20_000) + `}`,
}

// foreign is a warning about an instance of somebody else in the account.
func (b *bus) foreign() {
	id := fmt.Sprintf("i-%017x", b.dice.Uint64()>>8)
	b.strangers[id] = true
	n := &notice{kind: interruption.SpotInterrupted, instances: []string{id}, deadline: b.w.now().Truncate(time.Second).Add(2 * time.Minute)}
	b.event(n, "aws.ec2", "EC2 Spot Instance Interruption Warning", map[string]any{"instance-id": id, "instance-action": "terminate"})
}

// health is a change that Health announces, of two of ours and a stranger: as a rule some
// minutes ahead.
func (b *bus) health(alive []*ec2fake.Instance) {
	w, d := b.w, b.dice
	chosen := []*ec2fake.Instance{pick(d, alive)}
	if other := pick(d, alive); other != chosen[0] {
		chosen = append(chosen, other)
	}
	stranger := fmt.Sprintf("i-%017x", d.Uint64()>>8)
	b.strangers[stranger] = true
	n := &notice{kind: interruption.ScheduledChange}
	entities := []map[string]string{{"entityValue": "vol-0123456789abcdef0"}}
	for _, i := range chosen {
		n.instances = append(n.instances, i.ID)
	}
	n.instances = append(n.instances, stranger)
	for _, id := range n.instances {
		entities = append(entities, map[string]string{"entityValue": id}, map[string]string{"entityValue": id})
	}
	detail := map[string]any{"eventArn": "arn:aws:health:us-east-1::event/EC2/1", "service": "EC2", "eventTypeCode": "AWS_EC2_INSTANCE_STOP_SCHEDULED",
		"eventTypeCategory": "scheduledChange", "statusCode": "upcoming", "affectedEntities": entities}
	switch d.IntN(6) {
	case 0:
		detail["startTime"] = "some time soon"
	case 1: // it says no time
	case 2:
		detail["eventTypeCategory"], n.due = "accountNotification", dueNothing
	case 3:
		detail["statusCode"], n.due = "closed", dueNothing
	default:
		at := w.now().Truncate(time.Second).Add(d.between(30*time.Second, 12*time.Minute).Truncate(time.Second))
		n.deadline = at
		detail["startTime"] = at.Format(time.RFC1123)
		w.at(at, func() {
			for _, i := range chosen {
				b.end(i)
			}
		})
	}
	b.event(n, "aws.health", "AWS Health Event", detail)
}
