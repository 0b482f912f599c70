package coordinator

import (
	"bytes"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// Secret is what every member of a cluster knows. It prints as a word, so
// that no log or error shows it.
type Secret struct{ bytes []byte }

func (Secret) String() string   { return "(secret)" }
func (Secret) GoString() string { return "(secret)" }

const (
	minSecret = 16      // bytes; fewer can be guessed off line from one recorded packet
	maxSecret = 4 << 10 // bytes; more is a wrong file
)

// ReadSecret reads a shared secret from a file that only its owner may read.
// Blanks and line ends around it do not count.
func ReadSecret(path string) (Secret, error) {
	f, err := os.Open(path)
	if err != nil {
		return Secret{}, fmt.Errorf("secret: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return Secret{}, fmt.Errorf("secret: %w", err)
	}
	if info.IsDir() {
		return Secret{}, fmt.Errorf("secret %s: is a folder, not a file", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Secret{}, fmt.Errorf("secret %s: other users can read or change it (mode %04o): chmod 600 %s", path, mode, path)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSecret+1))
	if err != nil {
		return Secret{}, fmt.Errorf("secret: %w", err)
	}
	if len(b) > maxSecret {
		return Secret{}, fmt.Errorf("secret %s: more than %d bytes; that is no secret of ours", path, maxSecret)
	}
	b = bytes.TrimSpace(b)
	if len(b) < minSecret {
		return Secret{}, fmt.Errorf("secret %s: %d bytes are too few, want %d or more (make one: openssl rand -hex 32)", path, len(b), minSecret)
	}
	return Secret{b}, nil
}

// WriteSecret makes a random secret in a new file of mode 0600 in dir.
func WriteSecret(dir string) (path string, s Secret, err error) {
	var raw [32]byte
	rand.Read(raw[:])
	s = Secret{[]byte(hex.EncodeToString(raw[:]))}
	f, err := os.CreateTemp(dir, "secret-*") // mode 0600
	if err != nil {
		return "", s, fmt.Errorf("secret: %w", err)
	}
	if _, err = f.Write(append(s.bytes, '\n')); err == nil {
		err = f.Close()
	} else {
		f.Close()
	}
	if err != nil {
		os.Remove(f.Name())
		return "", s, fmt.Errorf("secret: %w", err)
	}
	return f.Name(), s, nil
}

// gossipKey is memberlist's AES-256 key. The label keeps it apart from other
// keys that may come from the same secret one day (RFC 5869, info).
func (s Secret) gossipKey() ([]byte, error) {
	return hkdf.Key(sha256.New, s.bytes, nil, "busbw gossip key v1", 32)
}
