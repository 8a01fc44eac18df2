package main

import (
	"fmt"
	"strconv"
	"strings"
)

// random is splitmix64, written out so that no version of a library changes the texts.
type random uint64

func (r *random) next() uint64 {
	*r += 0x9E3779B97F4A7C15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xBF58476D1CE4E5B9
	z = (z ^ z>>27) * 0x94D049BB133111EB
	return z ^ z>>31
}

func (r *random) below(n int) int { return int(r.next() % uint64(n)) }

func (r *random) of(all []string) string { return all[r.below(len(all))] }

func (r *random) digits(n int) string {
	digits := make([]byte, n)
	for i := range digits {
		digits[i] = '0' + byte(r.below(10))
	}
	return string(digits)
}

var (
	signs    = []string{"", "", "", "", "+", "-"}
	suffixes = []string{
		"", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei",
		"", "m", "k", "M", "G", "Ki", "Mi", "Gi", "Ti",
	}
	// What the field is called, and what looks like a suffix.
	wrongSuffixes = []string{"K", "g", "mi", "gi", "ki", "Ni", "i", "B", "GB", "GiB", "kk", "e", "E+", "e1.5", "e+-1", " ", "_0", "٣"}
)

// texts: those at an edge, then those of many lengths and suffixes, then close to the largest, then scrambled.
func texts() []string {
	seen := map[string]bool{}
	var all []string
	add := func(text string) {
		if !seen[text] && len(text) <= 64 {
			seen[text] = true
			all = append(all, text)
		}
	}
	for _, number := range []string{
		"0", "00", "-0", "+0", "0.", ".0", "0.0", "1", "01", "+1", "-1", "1.", ".5", "0.5", "-.5", "1.5", "1.500", "1.000",
		"10", "100", "999", "1000", "1001", "1023", "1024", "1025", "1536", "2048", "1000000", "1048576", "0.001", "0.0001",
		"0.000000001", "0.0000000001", "1.0000000001", "0.9999999999", "123456789012345678", "1234567890123456789",
		"12345678901234567890", "123456789.123456789", "0.123456789123456789123456789", "1.2.3", "", "-", "+", ".", "--1", "1-",
		"0x10", "1e", "NaN", "Inf", "1,5", " 1", "1 ", "１",
	} {
		for _, suffix := range append(suffixes[:16:16], "e0", "e3", "E3", "e-3", "e+6", "e1", "e-9", "e-10", "e17", "e18", "e19", "e25", "K", "e400", "e-400") {
			add(number + suffix)
		}
	}
	for _, text := range []string{"1e4294967297", "1e99999999999999999999", "1e1.5", "1E+", "e", "1ee3", "1Ee3", "1k3", "1e-", "1_000"} {
		add(text)
	}
	// Parts of a Ki that are whole units: written as decimals, with and without a suffix. Two in a row also as a sum.
	for units := int64(1); units < 1024; units += 13 {
		add(strconv.FormatInt(2048-units, 10) + ".5")
		add("0.00048828125Ki")
		add(fmt.Sprintf("0.%010dKi", units*9765625))
		add(fmt.Sprintf("-0.%010dKi", (1000-units/8*10)*9765625))
		add(fmt.Sprintf("%d.5Ki", units))
	}
	// Less than one unit is a decimal, also in a sum.
	for _, text := range []string{"2047.5", "0.000488281250Ki", "1023.5", "0.0004882812500Ki", "-2047.5", "-0.00048828125Ki"} {
		add(text)
	}
	r := random(20260101)
	for len(all) < 4600 {
		number := r.digits(1 + r.below(1+r.below(12)))
		if r.below(3) == 0 {
			number += "." + r.digits(r.below(1+r.below(14)))
		}
		suffix := r.of(suffixes)
		switch r.below(10) {
		case 0:
			suffix = fmt.Sprintf("%s%d", r.of([]string{"e", "E", "e+"}), r.below(16))
		case 1:
			suffix = fmt.Sprintf("%s%d", r.of([]string{"e-", "E-"}), r.below(14))
		case 2:
			if r.below(3) == 0 {
				suffix = r.of(wrongSuffixes)
			}
		}
		add(r.of(signs) + number + suffix)
	}
	// Around 2⁶³ in every unit.
	for _, power := range []uint{0, 10, 20, 30, 40, 50, 60} {
		for step := int64(-3); step <= 3; step++ {
			whole := uint64(1<<63>>power) + uint64(step)
			for _, fraction := range []string{"", ".0", ".000000001", ".9990234375", ".99999999999999999999"} {
				suffix := ""
				if power > 0 {
					suffix = string("KMGTPE"[power/10-1]) + "i"
				}
				add(r.of(signs) + strconv.FormatUint(whole, 10) + fraction + suffix)
			}
		}
	}
	for zeros := 0; zeros <= 27; zeros += 3 {
		number := "9223372036854775807000000000"
		suffix := []string{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"}[zeros/3]
		for _, point := range []string{"", ".0", ".1"} {
			if zeros <= len(number) {
				add(number[:len(number)-zeros] + point + suffix)
			}
		}
	}
	alphabet := strings.Split("0 1 2 3 4 5 6 7 8 9 0 1 5 . . + - e E i n u m k K M G T P", " ")
	for len(all) < 5600 {
		var text strings.Builder
		for range 1 + r.below(7) {
			text.WriteString(r.of(alphabet))
		}
		add(text.String())
	}
	return all
}
