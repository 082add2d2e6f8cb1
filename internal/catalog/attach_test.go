package catalog

import "testing"

// The figures are those that EC2 and the EBS CSI driver give for these types.
func TestEBSVolumes(t *testing.T) {
	for _, c := range []struct {
		typ        string
		interfaces int64
		devices    int64
		want       int64
	}{
		{"m5.large", 3, 1, 25},         // 28 less two interfaces and the root volume
		{"c6g.medium", 2, 1, 25},       //
		{"t3.nano", 2, 2, 24},          // Bottlerocket boots with two volumes
		{"m5.large", 0, 1, 25},         // interfaces unknown
		{"one.interface", 1, 1, 26},    //
		{"m5d.large", 3, 1, 24},        // instance store takes a slot
		{"m5d.24xlarge", 15, 1, 21},    //
		{"d3.8xlarge", 3, 1, 1},        // of 3
		{"d3en.12xlarge", 20, 5, 1},    // the driver never says less than 1
		{"g5.48xlarge", 7, 1, 7},       //
		{"m5.metal", 15, 1, 29},        //
		{"m4.large", 2, 1, 38},         // Xen
		{"m7i.large", 3, 1, 31},        // slots for volumes alone
		{"m7i-flex.2xlarge", 4, 1, 31}, //
		{"m7i.16xlarge", 15, 1, 47},
		{"m7i.48xlarge", 15, 1, 127},
		{"m7i.metal-24xl", 15, 1, 38},
		{"m8a.metal-24xl", 15, 1, 63},
		{"p5.48xlarge", 2, 1, 63},
		{"p5.4xlarge", 4, 1, 31},
		{"m7g.large", 3, 1, 25}, // Graviton 3 shares them still
		{"m7g.metal", 15, 1, 29},
		{"u7i-12tb.224xlarge", 15, 1, 127},
		{"new9z.large", 3, 1, 25},
		{"oddname", 0, 0, 25},
	} {
		typ := InstanceType{Name: c.typ, ENI: ENI{Interfaces: c.interfaces}}
		if got := typ.EBSVolumes(c.devices); got != c.want {
			t.Errorf("%s with %d interfaces and %d devices: %d volumes, want %d", c.typ, c.interfaces, c.devices, got, c.want)
		}
	}
	if got := (&InstanceType{Name: "m5.large", Volumes: 10}).EBSVolumes(3); got != 10 {
		t.Errorf("the catalogue's own figure: %d, want 10", got)
	}
}

// Every type of the embedded table has a figure between 1 and 127.
func TestEBSVolumesOfTheTable(t *testing.T) {
	dedicated := 0
	for i := range Default().Types {
		typ := &Default().Types[i]
		n := typ.EBSVolumes(1)
		if n < 1 || n > 127 {
			t.Errorf("%s: %d", typ.Name, n)
		}
		if n == 31 {
			dedicated++
		}
	}
	if dedicated < 200 {
		t.Errorf("%d types with slots for volumes alone: too few to be right", dedicated)
	}
}
