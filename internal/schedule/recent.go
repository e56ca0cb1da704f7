package schedule

import "time"

// Recent lists the newest n planned instants in [from, before), oldest first. However many there are, it walks a few
// times n of them, unless they come in clusters that lie very far apart.
func Recent(s Schedule, from, before time.Time, n int) []time.Time {
	if n <= 0 || !from.Before(before) {
		return nil
	}
	most := 8*n + 64
	found, whole := newest(s, from, before, n, most)
	if whole {
		return found
	}
	low, high := time.Duration(0), before.Sub(from)                                                             // too few instants lie within low of the end, too many to walk within high
	guess := max(found[len(found)-1].Sub(found[0])/time.Duration(len(found))*time.Duration(2*n+2), time.Second) // as far apart as those at the start
	for ; high-low > time.Millisecond; guess = min(4*guess, low+(high-low)/2) {
		switch all, whole := newest(s, before.Add(-guess), before, n, most); {
		case !whole:
			high = guess
		case len(all) == n:
			return all
		default:
			low = guess
		}
		guess = max(guess, low)
	}
	return backwards(s, from, before, n)
}

// newest walks from from, at most so many instants, and gives the last n: whole tells that it came to the end.
func newest(s Schedule, from, before time.Time, n, most int) (last []time.Time, whole bool) {
	at := from.Add(-time.Nanosecond)
	for len(last) < most {
		next, ok := s.Next(at)
		if !ok || !next.Before(before) {
			return last[max(len(last)-n, 0):], true
		}
		last, at = append(last, next), next
	}
	return last[max(len(last)-n, 0):], false
}

// backwards asks for one after the other.
func backwards(s Schedule, from, before time.Time, n int) []time.Time {
	all := make([]time.Time, n)
	for i := n - 1; i >= 0; i-- {
		at, ok := Prev(s, before)
		if !ok || at.Before(from) {
			return all[i+1:]
		}
		all[i], before = at, at
	}
	return all
}
