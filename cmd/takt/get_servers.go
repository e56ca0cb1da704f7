package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/taktsched/takt"
)

var serverHeader = []string{"SERVER", "STATE", "PARTITIONS", "BEAT", "UP", "CLOCK", "ADDRESS", "BUILD", "CANNOT-REACH", "INCARNATION"}

func (q *get) servers(ctx context.Context, c *takt.Client, _ []string) (*listing, error) {
	list, err := c.Servers(ctx)
	l := &listing{value: list, header: serverHeader, narrow: 8}
	for i := range list.Items {
		l.rows = append(l.rows, serverRow(&list.Items[i]))
	}
	if n := len(list.Unowned); n > 0 {
		l.lacks = fmt.Sprintf("%d of %d partitions have no owner now: their pools wait", n, list.Partitions)
	}
	return l, err
}

func serverRow(s *takt.ServerStatus) []string {
	state, up, clock := "live", "", ""
	switch {
	case !s.Live:
		state = "silent"
	case s.SitsOut:
		state = "sits out"
	}
	if s.UptimeMs != nil {
		up = age(time.Duration(*s.UptimeMs) * time.Millisecond)
	}
	if s.ClockAheadMs != nil {
		clock = age(time.Duration(*s.ClockAheadMs) * time.Millisecond)
	}
	return []string{s.Name, state, strconv.Itoa(len(s.Partitions)), age(time.Duration(s.LastBeatMs) * time.Millisecond), up, clock, s.Address, s.Build,
		strings.Join(s.Unreachable, ","), s.Incarnation}
}
