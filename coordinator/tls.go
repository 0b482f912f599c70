package coordinator

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// Fingerprint is the SHA-256 of a member's certificate (DER).
type Fingerprint [sha256.Size]byte

func (f Fingerprint) String() string { return base64.RawStdEncoding.EncodeToString(f[:]) }

func parseFingerprint(s string) (f Fingerprint, err error) {
	b, err := base64.RawStdEncoding.DecodeString(s)
	if err != nil || len(b) != len(f) {
		return f, fmt.Errorf("certificate fingerprint %q: want %d bytes in base64", clean(s, 64), len(f))
	}
	return Fingerprint(b), nil
}

// Identity is a certificate that one process made for itself. It lives as long
// as the process; members believe it because its fingerprint came by gossip.
type Identity struct {
	cert        tls.Certificate
	Fingerprint Fingerprint
}

// NewIdentity makes a fresh key and certificate.
func NewIdentity() (*Identity, error) {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, err
	}
	// The dates are wide because nobody reads them: clocks of nodes differ, and
	// the pinned fingerprint is what counts.
	tmpl := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "busbw"},
		NotBefore: time.Unix(0, 0), NotAfter: time.Now().AddDate(50, 0, 0),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, key)
	if err != nil {
		return nil, fmt.Errorf("certificate: %w", err)
	}
	return &Identity{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, sha256.Sum256(der)}, nil
}

// ErrUnknownMember ends a handshake with somebody who is not in the gossip.
var ErrUnknownMember = errors.New("certificate is not that of a member of this cluster")

// ServerTLS lets in clients whose certificate is known, and nobody else.
func (id *Identity) ServerTLS(known func(Fingerprint) bool) *tls.Config {
	return id.config(func(f Fingerprint) error {
		if !known(f) {
			return ErrUnknownMember
		}
		return nil
	})
}

// ClientTLS talks to the one server that holds the certificate want.
func (id *Identity) ClientTLS(want Fingerprint) *tls.Config {
	return id.config(func(f Fingerprint) error {
		if f != want {
			return fmt.Errorf("%w: its fingerprint is %.8s…, gossip says %.8s…", ErrUnknownMember, f, want)
		}
		return nil
	})
}

func (id *Identity) config(verify func(Fingerprint) error) *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{id.cert},
		MinVersion:   tls.VersionTLS13,
		ClientAuth:   tls.RequireAnyClientCert,
		// There is no authority to ask: VerifyConnection below is the whole
		// check, and runs on both sides of every handshake.
		InsecureSkipVerify:     true,
		SessionTicketsDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			f, ok := PeerFingerprint(&cs)
			if !ok {
				return ErrUnknownMember
			}
			return verify(f)
		},
	}
}

// PeerFingerprint is the fingerprint of the other side's certificate.
func PeerFingerprint(cs *tls.ConnectionState) (Fingerprint, bool) {
	if cs == nil || len(cs.PeerCertificates) == 0 {
		return Fingerprint{}, false
	}
	return sha256.Sum256(cs.PeerCertificates[0].Raw), true
}
