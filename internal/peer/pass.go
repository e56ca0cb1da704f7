package peer

import (
	"context"
	"encoding/json"
	"errors"
	"hash/fnv"
	"net/http"
	"time"
)

const (
	awaitGap = 20 * time.Millisecond  // about the time between looks at the directory, of one call that waits
	awayWait = 250 * time.Millisecond // for news of an owner that could not be called; most are dead for longer
)

// Pass hands a worker's call to whoever answers for its partition. While that changes hands the call waits here, for half of
// what its caller waits: the next owner is there sooner than a caller that was refused comes back. False when the call is
// to be answered here, because the partition is ours, or nobody's.
func (p *Peers) Pass(ctx context.Context, number int, c Call) (a Answer, passed bool, err error) {
	limit := time.Now().Add(p.patience)
	var refused Target // by this owner
	gap := gapOf(c.Body)
	for {
		to, found := p.await(ctx, number, refused, limit, gap)
		switch {
		case found == local || found == nobody && !passed:
			return Answer{}, false, nil
		case found == nobody:
			return a, true, err
		}
		a, err = p.Forward(ctx, to, c)
		now := time.Now()
		if passed = true; !moving(a, err) || !now.Before(limit) {
			return a, true, err
		}
		if refused = to; err != nil && limit.After(now.Add(awayWait)) {
			limit = now.Add(awayWait)
		}
	}
}

// AwaitHere waits for a partition whose engine is being loaded here: another server has sent a call for it.
func (p *Peers) AwaitHere(ctx context.Context, number int, body []byte) {
	for limit := time.Now().Add(p.patience / 2); time.Now().Before(limit); {
		if here, _ := p.directory.Coming(number); !here || !rest(ctx, gapOf(body)) {
			return
		}
	}
}

// place is where a partition was found.
type place int

const (
	nobody place = iota
	local
	remote
)

// await finds an owner but the one that has refused, and waits while one is to be expected.
func (p *Peers) await(ctx context.Context, number int, refused Target, limit time.Time, gap time.Duration) (Target, place) {
	for {
		h, known := p.directory.Owner(number)
		to := Target{Server: h.Server, Epoch: h.Epoch, Partition: number}
		switch {
		case known && h.Local:
			return Target{}, local
		case known && !to.same(refused):
			return to, remote
		case !known:
			if _, anywhere := p.directory.Coming(number); !anywhere {
				return Target{}, nobody
			}
		}
		if p.lanes.closed() {
			return Target{}, nobody
		}
		p.lookAgain()
		if !time.Now().Before(limit) || !rest(ctx, gap) {
			return Target{}, nobody
		}
	}
}

// moving tells whether an answer says that the owner is none any more, or is none yet.
func moving(a Answer, err error) bool {
	if err != nil {
		return !errors.Is(err, errStopping)
	}
	if a.Status != http.StatusServiceUnavailable {
		return false
	}
	var said struct{ Code string }
	return json.Unmarshal(a.Body, &said) == nil && said.Code == "no_owner"
}

// gapOf is a call's own gap between two looks: calls that begin to wait at one instant, because the connections to an owner broke, do
// not go on at one.
func gapOf(body []byte) time.Duration {
	h := fnv.New64a()
	_, _ = h.Write(body) // never fails
	return awaitGap + time.Duration(h.Sum64()%uint64(awaitGap/4))
}

// rest is a pause between two looks; false when ctx ended.
func rest(ctx context.Context, gap time.Duration) bool {
	timer := time.NewTimer(gap)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
