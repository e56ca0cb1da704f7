package app

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"os"
	"strings"

	"github.com/taktsched/takt/internal/job"
)

// maxToken bounds a token file, in bytes.
const maxToken = 4 << 10

// minToken is the length of the shortest token that a server takes which others can reach, in bytes.
const minToken = 16

// checkGuards refuses token and TLS settings that contradict themselves.
func (c Config) checkGuards() error {
	switch {
	case c.WorkerTokenFile != "" && c.TokenFile == "":
		return job.Errorf(job.KindInvalid, "token_required", "workers have a token, and people are asked for none").WithField("workerTokenFile").
			WithHint("give --token-file FILE, too")
	case (c.TLSCert == "") != (c.TLSKey == ""):
		return job.Errorf(job.KindInvalid, "tls_incomplete", "TLS wants a certificate and its key").WithField("tlsCert").
			WithHint("give both --tls-cert FILE and --tls-key FILE")
	case c.Connections < 0:
		return job.Errorf(job.KindInvalid, "bad_connections", "%d connections", c.Connections).WithField("connections").
			WithHint("give a number above 0")
	}
	return nil
}

// readTokens reads both token files. They must differ: else one is enough.
func (c Config) readTokens() (people, workers string, err error) {
	if people, err = readToken(c.TokenFile, "tokenFile"); err != nil {
		return "", "", err
	}
	if workers, err = readToken(c.WorkerTokenFile, "workerTokenFile"); err != nil {
		return "", "", err
	}
	if err := c.checkLengths(people, workers); err != nil {
		return "", "", err
	}
	if workers != "" && workers == people {
		return "", "", job.Errorf(job.KindInvalid, "tokens_equal", "people and workers have the same token").WithField("workerTokenFile").
			WithHint("write another token into it; --token-file alone is for both")
	}
	return people, workers, nil
}

// checkLengths refuses tokens that can be guessed where others can try: beyond this machine.
func (c Config) checkLengths(people, workers string) error {
	host, _, err := net.SplitHostPort(c.Listen)
	if c.Listener != nil || err != nil || loopback(host) {
		return nil //nolint:nilerr // an address that cannot be read was refused before
	}
	for _, t := range []struct{ token, file, field string }{{people, c.TokenFile, "tokenFile"}, {workers, c.WorkerTokenFile, "workerTokenFile"}} {
		if t.token != "" && len(t.token) < minToken {
			return job.Errorf(job.KindInvalid, "token_too_short", "the token in %s has %d characters, and %s can be reached from other machines", t.file, len(t.token), c.Listen).
				WithField(t.field).WithHint("a token has at least %d characters: write the output of `openssl rand -hex 32` into the file", minToken)
		}
	}
	return nil
}

// tlsConfig is nil when the server speaks plain HTTP.
func (c Config) tlsConfig() (*tls.Config, error) {
	if c.TLSCert == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(c.TLSCert, c.TLSKey)
	if err != nil {
		return nil, job.Errorf(job.KindInvalid, "bad_certificate", "the certificate and its key cannot be used").WithField("tlsCert").
			WithHint("both are PEM files, the certificate first in its chain").WithCause(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: []string{"http/1.1"}}, nil
}

// readToken reads a token file: one line, spaces around it cut off.
func readToken(path, field string) (string, error) {
	if path == "" {
		return "", nil
	}
	bad := func(format string, args ...any) *job.Error {
		return job.Errorf(job.KindInvalid, "bad_token_file", format, args...).WithField(field).
			WithHint("name a file that this user may read, with one line: the token, such as the output of `openssl rand -hex 32`")
	}
	f, err := os.Open(path)
	if err != nil {
		return "", bad("the token file cannot be read").WithCause(err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return "", bad("the token file cannot be read").WithCause(err)
	}
	token := strings.TrimSpace(string(raw))
	switch {
	case len(raw) > maxToken:
		return "", bad("%s is larger than %d bytes: is it a token file?", path, maxToken)
	case token == "":
		return "", bad("%s is empty", path)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", bad("the token in %s has spaces or characters that a header cannot carry", path)
	}
	return token, nil
}
