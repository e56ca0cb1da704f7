package takt

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
)

const maxCA = 1 << 20 // bytes of a file with certificates

// newTransport makes a transport like the default one. caFile names a PEM file with the certificates that vouch for
// the servers, in place of the system's; "": the system's.
func newTransport(caFile string) (*http.Transport, error) {
	t := &http.Transport{}
	if d, ok := http.DefaultTransport.(*http.Transport); ok {
		t = d.Clone()
	}
	if caFile == "" {
		return t, nil
	}
	f, err := os.Open(caFile)
	if err != nil {
		return nil, fmt.Errorf("takt: CA file: %w", err)
	}
	pem, err := io.ReadAll(io.LimitReader(f, maxCA))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("takt: CA file %s: %w", caFile, err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("takt: CA file %s holds no certificate in PEM form", caFile)
	}
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return t, nil
}

var errTwoTransports = errors.New("takt: CAFile and HTTPClient are both set: the client's transport says whom it trusts")
