//go:build linux || darwin || freebsd

package sqlite

import "golang.org/x/sys/unix"

// freeBytes is what this user may still write on the file system of a directory; false when that is not known.
func freeBytes(dir string) (int64, bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return int64(st.Bavail) * int64(st.Bsize), true //nolint:gosec,unconvert // the types differ by system; no disk has 2^63 bytes
}
