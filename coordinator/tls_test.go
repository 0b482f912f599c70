package coordinator

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"testing"
	"time"
)

// handshake is a TLS connection on which the server says "hi".
func handshake(t *testing.T, server, client *tls.Config) (string, error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		c.SetDeadline(time.Now().Add(5 * time.Second))
		c.Write([]byte("hi"))
		c.Close()
	}()
	c, err := tls.DialWithDialer(&net.Dialer{Timeout: 5 * time.Second}, "tcp", l.Addr().String(), client)
	if err != nil {
		return "", err
	}
	defer c.Close()
	b, err := io.ReadAll(c) // with TLS 1.3 the server's refusal comes here
	return string(b), err
}

func TestPinnedBothWays(t *testing.T) {
	id := func() *Identity {
		i, err := NewIdentity()
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	server, member, stranger := id(), id(), id()
	here := true // whether the member has not left
	cfg := server.ServerTLS(func(f Fingerprint) bool { return here && f == member.Fingerprint })

	if got, err := handshake(t, cfg, member.ClientTLS(server.Fingerprint)); got != "hi" || err != nil {
		t.Errorf("a member: %q, %v", got, err)
	}
	if got, err := handshake(t, cfg, stranger.ClientTLS(server.Fingerprint)); got != "" || err == nil {
		t.Errorf("a certificate that is not in the gossip: %q, %v", got, err)
	} else if !isStranger(err) {
		t.Errorf("the alert is not recognised: %v", err)
	}
	none := member.ClientTLS(server.Fingerprint)
	none.Certificates = nil
	if got, err := handshake(t, cfg, none); got != "" || err == nil {
		t.Errorf("no certificate: %q, %v", got, err)
	}
	old := member.ClientTLS(server.Fingerprint)
	old.MinVersion, old.MaxVersion = tls.VersionTLS12, tls.VersionTLS12
	if got, err := handshake(t, cfg, old); got != "" || err == nil {
		t.Errorf("TLS 1.2: %q, %v", got, err)
	}
	if got, err := handshake(t, cfg, member.ClientTLS(stranger.Fingerprint)); got != "" || !errors.Is(err, ErrUnknownMember) {
		t.Errorf("another server at the address: %q, %v", got, err)
	}
	// A stolen certificate without its key proves nothing.
	thief := stranger.ClientTLS(server.Fingerprint)
	thief.Certificates[0].Certificate = member.cert.Certificate
	if got, err := handshake(t, cfg, thief); got != "" || err == nil {
		t.Errorf("the member's certificate with another key: %q, %v", got, err)
	}
	here = false
	if got, err := handshake(t, cfg, member.ClientTLS(server.Fingerprint)); got != "" || err == nil {
		t.Errorf("a member that left: %q, %v", got, err)
	}
}
