// Command quantity writes what Go's resource.Quantity makes of some thousand texts: the vectors that the type in
// crds is tested with. The same texts every time.
//
// One line a text, separated by tabs:
//
//	text, canonical form, thousandths, units, comparison with the one before, canonical sum with the one before
//
// The one before is the last text that is a quantity within ±(2⁶³-1). "!" stands for "refused", ">" for a value past
// 2⁶³-1, which the library keeps or, silently, caps. Thousandths and units are empty where the value has a fraction
// of one or their number does not fit 64 bits.
package main

import (
	"bufio"
	"fmt"
	"math/big"
	"os"
	"strings"

	"gopkg.in/inf.v0"
	"k8s.io/apimachinery/pkg/api/resource"
)

var largest = inf.NewDec(1<<63-1, 0)

func main() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var before *resource.Quantity
	for _, text := range texts() {
		quantity, err := resource.ParseQuantity(text)
		switch {
		case err != nil:
			fmt.Fprintf(out, "%s\t!\n", text)
		case isPastLargest(quantity) || wasCapped(text):
			fmt.Fprintf(out, "%s\t>\n", text)
		default:
			fmt.Fprintf(out, "%s\t%s\t%s\t%s", text, canonical(quantity), whole(quantity, resource.Milli), whole(quantity, 0))
			if before != nil {
				fmt.Fprintf(out, "\t%d\t%s", quantity.Cmp(*before), sum(quantity, *before))
			}
			fmt.Fprintln(out)
			before = &quantity
		}
	}
}

// canonical, not String: that gives back the text of the author where it takes it for canonical (+1, 1.500).
func canonical(quantity resource.Quantity) string {
	number, suffix := quantity.CanonicalizeBytes(nil)
	return string(number) + string(suffix)
}

func whole(quantity resource.Quantity, scale resource.Scale) string {
	rounded := quantity.DeepCopy()
	if !rounded.RoundUp(scale) {
		return ""
	}
	number := new(inf.Dec).Round(decimal(quantity), inf.Scale(-scale), inf.RoundExact).UnscaledBig()
	if !number.IsInt64() {
		return ""
	}
	// What the scheduler counts with. The library gets large negative ones wrong (-1Pi has -2882303761516 thousandths).
	if value := quantity.ScaledValue(scale); quantity.Sign() >= 0 && value != number.Int64() {
		panic(fmt.Sprintf("%s has %d units of 10^%d, not %d", canonical(quantity), number, scale, value))
	}
	return number.String()
}

func sum(one, two resource.Quantity) string {
	result := one.DeepCopy()
	result.Add(two)
	if isPastLargest(result) {
		return ">"
	}
	return canonical(result)
}

func isPastLargest(quantity resource.Quantity) bool {
	return new(inf.Dec).Abs(decimal(quantity)).Cmp(largest) > 0
}

// decimal of a copy, as AsDec changes what it is asked of.
func decimal(quantity resource.Quantity) *inf.Dec {
	copied := quantity.DeepCopy()
	return copied.AsDec()
}

// wasCapped works the value of a binary quantity out by itself, as the library does not tell.
func wasCapped(text string) bool {
	power := 10 * (1 + strings.Index("KMGTPE", string(text[max(0, len(text)-2)])))
	number, binary := strings.CutSuffix(text, "i")
	if !binary || power == 0 {
		return false
	}
	value, ok := new(big.Rat).SetString(number[:len(number)-1])
	if !ok {
		return false
	}
	value.Mul(value, new(big.Rat).SetInt(new(big.Int).Lsh(big.NewInt(1), uint(power))))
	return value.Abs(value).Cmp(new(big.Rat).SetInt64(1<<63-1)) > 0
}
