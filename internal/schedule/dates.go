package schedule

import (
	"fmt"
	"slices"
	"sort"
)

// stretch is a range of days, both included.
type stretch struct {
	from, to day
	name     string
}

// dateSet answers in little time whether a day is listed: a search for an open day asks about every day of a century.
type dateSet struct {
	dated  []stretch           // by their first day
	widest []int               // of dated up to here, the one that reaches furthest
	yearly [13 * 32]*yearlyDay // by month*32+day
}

type yearlyDay struct{ name string }

// find tells whether a day is listed, and the name under which, if it has one.
func (s *dateSet) find(d day) (name string, ok bool) {
	if i := sort.Search(len(s.dated), func(i int) bool { return s.dated[i].from > d }) - 1; i >= 0 {
		if w := s.dated[s.widest[i]]; w.to >= d {
			return w.name, true
		}
	}
	_, month, n := d.date().Date()
	if y := s.yearly[int(month)*32+n]; y != nil {
		return y.name, true
	}
	return "", false
}

// addYearly lists from to to (month*32+day) in every year, over the new year when to comes first.
func (s *dateSet) addYearly(from, to day, name string) {
	y := &yearlyDay{name}
	for key := from; ; key = (key + 1) % day(len(s.yearly)) {
		if s.yearly[key] == nil {
			s.yearly[key] = y
		}
		if key == to {
			return
		}
	}
}

func datesOf(list []Dates, field string) (*dateSet, *Error) {
	s := &dateSet{}
	for i, d := range list {
		from, yearly, err := d.From.parse(fmt.Sprintf("%s[%d].from", field, i))
		if err != nil {
			return nil, err
		}
		to, yearlyTo := from, yearly
		if d.To != "" {
			if to, yearlyTo, err = d.To.parse(fmt.Sprintf("%s[%d].to", field, i)); err != nil {
				return nil, err
			}
		}
		switch {
		case yearlyTo != yearly || to < from && !yearly:
			return nil, &Error{Field: fmt.Sprintf("%s[%d]", field, i), Message: fmt.Sprintf("%s to %s is no range of dates", d.From, d.To),
				Hint: "write the first day first, and both with the year (2026-10-01) or both without (10-01)"}
		case yearly:
			s.addYearly(from, to, d.Name)
		default:
			s.dated = append(s.dated, stretch{from, to, d.Name})
		}
	}
	slices.SortStableFunc(s.dated, func(a, b stretch) int { return int(a.from - b.from) })
	s.widest = make([]int, len(s.dated))
	for i := range s.dated {
		s.widest[i] = i
		if i > 0 && s.dated[s.widest[i-1]].to >= s.dated[i].to {
			s.widest[i] = s.widest[i-1]
		}
	}
	return s, nil
}
