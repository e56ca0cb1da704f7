package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"
	"time"
)

// special are the networks beside those that netip knows by name from which nothing public answers.
var special = func() []netip.Prefix {
	var list []netip.Prefix
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15", "198.51.100.0/24",
		"203.0.113.0/24", "240.0.0.0/4", "100::/64", "2001::/23", "2001:db8::/32", "3fff::/20", "5f00::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

var (
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
	local = netip.MustParsePrefix("64:ff9b:1::/48")
	sixTo = netip.MustParsePrefix("2002::/16")
)

// public tells whether an address belongs to a machine on the Internet: not to this one, to a network of
// its owner, to a link or to nobody. IPv6 addresses that carry an IPv4 one are judged by that.
func public(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	b := a.As16()
	switch {
	case nat64.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[12:16])))
	case sixTo.Contains(a):
		return public(netip.AddrFrom4([4]byte(b[2:6])))
	case a.Is6() && netip.MustParsePrefix("::/96").Contains(a), local.Contains(a):
		return false
	}
	if !a.IsGlobalUnicast() || a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return false
	}
	for _, p := range special {
		if p.Contains(a) {
			return false
		}
	}
	return true
}

// refused is the error of an address that must not be called.
type refused struct{ address netip.Addr }

func (r *refused) Error() string {
	return fmt.Sprintf("%s is a private, local or reserved address: the handler must allow it (allow or allowPrivate)", r.address)
}

// dialer connects to addresses that it may connect to. What is checked is the address of the connection,
// whatever the name said a moment before.
type dialer struct {
	any    bool           // private ones too
	allow  []netip.Prefix // networks that may be called although they are private
	lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

func (d *dialer) check(a netip.Addr) error {
	a = a.Unmap()
	if d.any || public(a) {
		return nil
	}
	for _, p := range d.allow {
		if p.Contains(a) {
			return nil
		}
	}
	return &refused{a}
}

// dial is an http.Transport.DialContext. It tries the addresses of the name in turn; one that is refused
// ends it, so that a name cannot hide a private address behind a public one.
func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	addresses, err := d.resolve(ctx, host)
	if err != nil {
		return nil, err
	}
	for _, a := range addresses {
		if err := d.check(a); err != nil {
			return nil, err
		}
	}
	nd := &net.Dialer{Timeout: 5 * time.Second, Control: d.control}
	var errs []error
	for _, a := range addresses {
		conn, err := nd.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		errs = append(errs, err)
	}
	return nil, errors.Join(append(errs, ctx.Err())...)
}

// control looks once more at what the kernel is about to be asked for.
func (d *dialer) control(_, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	return d.check(ap.Addr())
}

func (d *dialer) resolve(ctx context.Context, host string) ([]netip.Addr, error) {
	if a, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{a}, nil
	}
	lookup := d.lookup
	if lookup == nil {
		lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	list, err := lookup(ctx, host)
	if err == nil && len(list) == 0 {
		err = fmt.Errorf("the name %s has no address", host)
	}
	return list, err
}
