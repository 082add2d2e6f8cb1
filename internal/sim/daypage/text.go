package daypage

import (
	"bytes"
	"fmt"
)

// Text is a day in a few lines.
func Text(d *Day) []byte {
	var b bytes.Buffer
	paid, never, floor := d.Paid(), d.PaidNever(), d.PaidFloor()
	lost, pods := 0, 0
	for _, i := range d.Interruptions {
		lost, pods = lost+i.Lost, pods+i.Pods
	}
	count := map[string]int{}
	back := 0
	for i := range d.Moves {
		if m := &d.Moves[i]; m.Back() {
			back++
		} else {
			count[m.Reason] += len(m.Nodes)
		}
	}
	fmt.Fprintf(&b, "A simulated day, %s to %s, with Kerf's own handlers:\n", d.Clock(0), d.Clock(d.Length()))
	fmt.Fprintf(&b, "  paid            %8s   %s less than %s without consolidation; the floor is %s\n", Dollars(paid), percentLess(paid, never), Dollars(never), Dollars(floor))
	fmt.Fprintf(&b, "  pods            %8d   started; the longest waited %s, 95 %% ran within %s\n", d.Kerf.Waits, Long(d.Kerf.Longest.Long), Long(d.Kerf.P95))
	fmt.Fprintf(&b, "  spot            %8d   nodes taken by EC2; %d of %d pods left in time\n", len(d.Interruptions), pods-lost, pods)
	fmt.Fprintf(&b, "  bad image       %8d   moves taken back; %d instances never joined and cost %s\n", d.Image.RolledBack, d.Image.Launched-d.Image.Joined, Dollars(d.Image.Cost))
	fmt.Fprintf(&b, "  nodes that went %8d   %d empty, %d to save, %d renewed for an image; %d moves taken back\n",
		count["Empty"]+count["Underutilized"]+count["Drifted"], count["Empty"], count["Underutilized"], count["Drifted"], back)
	return b.Bytes()
}
