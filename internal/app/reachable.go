package app

import (
	"context"
	"net"
	"net/netip"
	"net/url"
	"time"

	"github.com/taktsched/takt/internal/job"
	"github.com/taktsched/takt/internal/store"
)

// reachable refuses a server at an address of this machine alone while servers of other machines live on the database:
// workers' calls would end at it. A server lives whose beat moves within a partition lease.
func (a *App) reachable(ctx context.Context, self store.Server) error {
	if !onlyHere(self.Address) {
		return nil
	}
	own, err := net.InterfaceAddrs()
	if err != nil {
		return nil //nolint:nilerr // a machine that does not tell its addresses: the other servers will say that they cannot reach it
	}
	first, err := a.elsewhere(ctx, own)
	if err != nil || len(first) == 0 {
		return err
	}
	lease := a.cfg.Lease.Filled()
	for end := time.Now().Add(lease.OwnerTTL); time.Now().Before(end); {
		timer := time.NewTimer(lease.Look)
		select {
		case <-ctx.Done():
			timer.Stop()
			return context.Cause(ctx)
		case <-timer.C:
		}
		now, err := a.elsewhere(ctx, own)
		if err != nil {
			return err
		}
		for incarnation, s := range now {
			if was, there := first[incarnation]; !there || was.Beat != s.Beat {
				return job.Errorf(job.KindConflict, "address_unreachable", "this server would be at %s, which only this machine reaches, and the server %s at %s is on the same database",
					self.Address, s.Name, s.Address).WithField("advertise").
					WithHint("give --listen an address that the other machines reach, or say by --advertise URL how they do")
			}
		}
	}
	return nil
}

// elsewhere lists the servers whose address is another machine's.
func (a *App) elsewhere(ctx context.Context, own []net.Addr) (map[string]store.Server, error) {
	rows, err := a.store.Servers(ctx)
	if err != nil {
		return nil, err
	}
	all := map[string]store.Server{}
	for _, s := range rows {
		if s.Address != "" && !onlyHere(s.Address) && !isOwn(s.Address, own) {
			all[s.Incarnation] = s
		}
	}
	return all, nil
}

// onlyHere tells whether an address is reached from one machine only.
func onlyHere(address string) bool {
	u, err := url.Parse(address)
	return err == nil && loopback(u.Hostname())
}

// isOwn tells whether an address is one of this machine.
func isOwn(address string, own []net.Addr) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(u.Hostname())
	if err != nil {
		return false // a name: what it means may change
	}
	for _, a := range own {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Unmap() == ip.Unmap() {
			return true
		}
	}
	return false
}
