package coordinator

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadSecret(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		name, text string
		mode       os.FileMode
		want       string
	}{
		{"good", " 0123456789abcdef0123456789abcdef\n", 0o600, ""},
		{"read-only", "0123456789abcdef", 0o400, ""},
		{"group", "0123456789abcdef", 0o640, "chmod 600"},
		{"world", "0123456789abcdef", 0o604, "chmod 600"},
		{"writable", "0123456789abcdef", 0o602, "chmod 600"},
		{"short", "tooshort\n", 0o600, "too few"},
		{"empty", "", 0o600, "too few"},
		{"huge", strings.Repeat("x", maxSecret+1), 0o600, "more than"},
	} {
		path := filepath.Join(dir, c.name)
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, c.mode); err != nil { // not under the umask
			t.Fatal(err)
		}
		s, err := ReadSecret(path)
		switch {
		case c.want == "" && (err != nil || string(s.bytes) != strings.TrimSpace(c.text)):
			t.Errorf("%s: %v", c.name, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path)):
			t.Errorf("%s: %v; want %q", c.name, err, c.want)
		case err != nil && len(c.text) > 8 && strings.Contains(err.Error(), c.text):
			t.Errorf("%s: the secret is in the message", c.name)
		}
	}
	for _, path := range []string{dir, filepath.Join(dir, "absent")} {
		if _, err := ReadSecret(path); err == nil {
			t.Errorf("%s: no error", path)
		}
	}
}

func TestSecretDoesNotPrint(t *testing.T) {
	path, s, err := WriteSecret(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	raw := string(s.bytes)
	for _, f := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
		if got := fmt.Sprintf(f, struct{ S Secret }{s}); strings.Contains(got, raw) || strings.Contains(got, fmt.Sprint(s.bytes)) {
			t.Errorf("%s prints it: %s", f, got)
		}
	}
	again, err := ReadSecret(path)
	if err != nil || !bytes.Equal(again.bytes, s.bytes) {
		t.Errorf("read back: %v", err)
	}
	other, _, _ := WriteSecret(t.TempDir())
	if b, _ := os.ReadFile(other); string(bytes.TrimSpace(b)) == raw {
		t.Error("two secrets are equal")
	}
}

// TestGossipKey pins the key: members of two versions must agree on it.
// Reference: RFC 5869 with SHA-256, no salt, computed with Python's hmac.
func TestGossipKey(t *testing.T) {
	key, err := Secret{[]byte("0123456789abcdef")}.gossipKey()
	if got := hex.EncodeToString(key); err != nil || got != "7f382ec411d596615c9c863ea6e595f1e2fdf460f71cbb972d09a6e314dfe1c6" {
		t.Errorf("key %s, %v", got, err)
	}
}
