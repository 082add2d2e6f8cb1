package pricing

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"kerf.sh/kerf/internal/cloud/awserr"
	"kerf.sh/kerf/internal/cloud/paging"
)

// Products is the call of the price list that list prices need.
type Products interface {
	GetProducts(ctx context.Context, in *pricing.GetProductsInput, opts ...func(*pricing.Options)) (*pricing.GetProductsOutput, error)
}

// EC2 are the calls of EC2 that spot prices, offerings and reservations need.
type EC2 interface {
	DescribeSpotPriceHistory(ctx context.Context, in *ec2.DescribeSpotPriceHistoryInput, opts ...func(*ec2.Options)) (*ec2.DescribeSpotPriceHistoryOutput, error)
	DescribeCapacityReservations(ctx context.Context, in *ec2.DescribeCapacityReservationsInput, opts ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error)
}

// Endpoint is the region whose price list has a region: there are few (Karpenter: same).
func Endpoint(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	}
	return "us-east-1"
}

// OnDemand are the list prices of a region by type, in micro-dollars per hour (yuan in
// China), Linux, shared tenancy, and bare metal. Types at no price are left out. Nothing
// comes with an error: half a list would hide types.
func OnDemand(ctx context.Context, c Products, region string) (map[string]int64, error) {
	out := map[string]int64{}
	for _, kind := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(100), Filters: productFilters(region, kind[0], kind[1])}
		err := paging.All(func() {}, func(token *string) (*string, error) { // a price that is read twice is the same
			in.NextToken = token
			page, err := c.GetProducts(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, text := range page.PriceList {
				name, price, err := readProduct(text)
				if err != nil {
					return nil, err
				}
				if price > 0 {
					out[name] = price
				}
			}
			return page.NextToken, nil
		})
		if err != nil {
			return nil, fmt.Errorf("read list prices of %s: %w", region, awserr.From(err))
		}
	}
	return out, nil
}

func productFilters(region, tenancy, family string) []types.Filter {
	all := map[string]string{
		"regionCode": region, "serviceCode": "AmazonEC2", "preInstalledSw": "NA", "operatingSystem": "Linux",
		"capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": tenancy, "productFamily": family,
	}
	var out []types.Filter
	for _, k := range slices.Sorted(maps.Keys(all)) {
		out = append(out, types.Filter{Field: aws.String(k), Type: types.FilterTypeTermMatch, Value: aws.String(all[k])})
	}
	return out
}

// readProduct reads one entry of the price list: a type and the lowest price above 0.
func readProduct(text string) (string, int64, error) {
	var p struct {
		Product struct {
			Attributes struct {
				InstanceType string `json:"instanceType"`
			} `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					PricePerUnit map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return "", 0, fmt.Errorf("read product: %w", err)
	}
	var best int64
	for _, term := range p.Terms.OnDemand {
		for _, d := range term.PriceDimensions {
			for _, currency := range []string{"USD", "CNY"} {
				s, ok := d.PricePerUnit[currency]
				if !ok {
					continue
				}
				price, err := Micro(s)
				if err != nil {
					return "", 0, fmt.Errorf("read product %s: %w", p.Product.Attributes.InstanceType, err)
				}
				if price > 0 && (best == 0 || price < best) {
					best = price
				}
			}
		}
	}
	return p.Product.Attributes.InstanceType, best, nil
}

// Micro reads a price in dollars as micro-dollars, rounded up: what is paid is never
// thought to be less.
func Micro(s string) (int64, error) {
	r, ok := new(big.Rat).SetString(s)
	if !ok || r.Sign() < 0 || strings.ContainsAny(s, "/eEpPxX_") {
		return 0, fmt.Errorf("read price %q: it is no amount of dollars", s)
	}
	r.Mul(r, big.NewRat(1_000_000, 1))
	q, rest := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if rest.Sign() > 0 {
		q.Add(q, big.NewInt(1))
	}
	if !q.IsInt64() {
		return 0, fmt.Errorf("read price %q: it is too large", s)
	}
	return q.Int64(), nil
}

// Spot are the present spot prices by type and zone, in micro-dollars per hour. Nothing
// comes with an error. A pair that is missing is not offered as spot.
func Spot(ctx context.Context, c EC2, now time.Time) (map[string]map[string]int64, error) {
	var out map[string]map[string]int64
	var at map[string]time.Time
	in := &ec2.DescribeSpotPriceHistoryInput{
		StartTime: aws.Time(now), MaxResults: aws.Int32(1000),
		ProductDescriptions: []string{string(ec2types.RIProductDescriptionLinuxUnix), string(ec2types.RIProductDescriptionLinuxUnixAmazonVpc)},
	}
	err := paging.All(func() { out, at = map[string]map[string]int64{}, map[string]time.Time{} }, func(token *string) (*string, error) {
		in.NextToken = token
		page, err := c.DescribeSpotPriceHistory(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, p := range page.SpotPriceHistory {
			name, zone, when := string(p.InstanceType), aws.ToString(p.AvailabilityZone), aws.ToTime(p.Timestamp)
			price, err := Micro(aws.ToString(p.SpotPrice))
			if err != nil {
				return nil, fmt.Errorf("the price of %s in %s: %w", name, zone, err)
			}
			key := name + "/" + zone
			if last, ok := at[key]; price <= 0 || zone == "" || ok && !when.After(last) {
				continue
			}
			at[key] = when
			if out[name] == nil {
				out[name] = map[string]int64{}
			}
			out[name][zone] = price
		}
		return page.NextToken, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read spot prices: %w", awserr.From(err))
	}
	return out, nil
}
