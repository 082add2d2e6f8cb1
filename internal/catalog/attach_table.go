package catalog

// Attach limits of instance types, as the EBS CSI driver of August 2026 has them: what
// EC2 reports (DescribeInstanceTypes: EbsInfo.MaximumEbsAttachments and
// AttachmentLimitType) with the driver's corrections. Written as exceptions to a rule;
// attach.go says which.

// xenFamilies take 39 volumes beside the root volume's slot, whatever else is attached.
const xenFamilies = "c1 c3 c4 d2 h1 i2 i3 m1 m2 m3 m4 r3 r4 t1 t2 x1 x1e"

// dedicatedFamilies have slots for volumes alone, by size (dedicatedSlots); a size that
// differs follows its family.
const dedicatedFamilies = `
c7a,c7i,c7i-flex,c8g,c8gd,c8i-flex,c8ine,c9g,c9gd,f2,g6,g6e,g6f,g7,g7e,gr6,gr6f,i7i,i7ie,i8g,i8ge,m7a,m7i,m7i-flex,m8g,m8gd,m8i-flex,m8ine,m9g,m9gd,r7a,r7i,r7iz,r8g,r8gd,r8i-flex,u7i-12tb,u7i-6tb,u7i-8tb,u7in-16tb,u7in-24tb,u7in-32tb,x8g
c8a,m8a,r8a metal-24xl=64
c8gb,c8gn,m8gb,m8gn,r8gb,r8gn metal-48xl=78
c8i,c8id,m8i,m8id,r8i,r8id,x8i metal-48xl=64
c8ib,c8in,m8ib,m8idb,m8idn,m8in,r8ib,r8idb,r8idn,r8in metal-48xl=64 metal-96xl=78
hpc7a 12xlarge=27 24xlarge=27 48xlarge=27 96xlarge=27
hpc8a 96xlarge=27
m8azn,x8aedz 12xlarge=64 24xlarge=128 metal-12xl=64 metal-24xl=79
p4d,p4de 24xlarge=28
p5,p5e,p5en,p6-b200,p6-b300,trn2 48xlarge=64
`

// sharedFamilies share 28 slots with network interfaces and instance store: given is
// what is left beside one interface, first of most sizes, then of those that differ.
// Families that are not listed have 27.
const sharedFamilies = `
c5ad 25 large=26 xlarge=26 2xlarge=26
c5d 26 12xlarge=25 18xlarge=25 24xlarge=23
c6gd,c7gd,m6gd,m7gd,r6gd,r7gd,x2gd 26 12xlarge=25 16xlarge=25
c6id,m6id,m6idn,r6id,r6idn 26 12xlarge=25 16xlarge=25 24xlarge=23 32xlarge=23
d3 21 xlarge=24 4xlarge=15 8xlarge=3
d3en 3 xlarge=25 2xlarge=23 4xlarge=19 6xlarge=15 8xlarge=11
dl2q 19
g4ad 25 8xlarge=24 16xlarge=21
g4dn 25 12xlarge=22
g5 25 12xlarge=22 24xlarge=22 48xlarge=9
g5g 26 16xlarge=25
hpc6id 23
i3en 26 2xlarge=25 6xlarge=25 12xlarge=23 24xlarge=19
i4g,im4gn 26 8xlarge=25 16xlarge=23
i4i 26 8xlarge=25 12xlarge=24 16xlarge=23 24xlarge=21 32xlarge=19
inf1 26 6xlarge=23 24xlarge=11
inf2 28 xlarge=26 8xlarge=26
is4gen 26 4xlarge=25 8xlarge=23
m5ad,m5d,m5dn,r5ad,r5d,r5dn 25 large=26 xlarge=26 2xlarge=26 16xlarge=23 24xlarge=23
mac-m3ultra,mac-m4max,mac2,mac2-m1ultra,mac2-m2,mac2-m2pro 27 metal=10
mac1 27 metal=16
p3dn 17
trn1 25 32xlarge=28
trn1n 28
vt1 27 3xlarge=25 6xlarge=23
x2idn 25 16xlarge=26
x2iedn 26 24xlarge=25 32xlarge=25
z1d 26 12xlarge=25
`
