package coordinator

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"syscall"
	"time"
)

// remote is the HTTPS interface of one worker.
type remote struct {
	name   string // "node 1 (gpu2)"
	base   string // https://IP:PORT
	client *http.Client
}

func newRemote(id *Identity, name string, m Member) *remote {
	tr := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: 5 * time.Second, KeepAlive: 5 * time.Second}).DialContext,
		TLSClientConfig:       id.ClientTLS(m.Fingerprint),
		TLSHandshakeTimeout:   5 * time.Second,
		ResponseHeaderTimeout: 10 * time.Second,
		IdleConnTimeout:       time.Minute,
		MaxIdleConnsPerHost:   4,
		DisableCompression:    true,
	}
	return &remote{name, "https://" + m.API.String(), &http.Client{
		Transport: tr,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return errors.New("a worker never redirects")
		},
	}}
}

func (r *remote) close() { r.client.CloseIdleConnections() }

// call sends in (nil: nothing) and reads the answer into out (nil: nothing).
func (r *remote) call(ctx context.Context, method, path string, in []byte, out any) error {
	resp, err := r.send(ctx, method, path, in)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, MaxBody))
	} else {
		err = json.NewDecoder(io.LimitReader(resp.Body, MaxBody)).Decode(out)
	}
	if err != nil {
		return fmt.Errorf("%s: answer to %s %s: %w", r.name, method, path, err)
	}
	return nil
}

// first is the first call to a worker. Gossip may tell us of it a little before
// it tells it of us, and until then it takes us for a stranger.
func (r *remote) first(ctx context.Context, method, path string, in []byte, out any) error {
	for deadline := time.Now().Add(newcomer); ; {
		err := r.call(ctx, method, path, in, out)
		if err == nil || !isStranger(err) || time.Now().After(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// newcomer is how long gossip may need to tell everybody of a new member;
// 3 gossip rounds of 200 ms reach a few dozen, a dozen rounds ten thousands.
const newcomer = 10 * time.Second

// isStranger finds the alert that ErrUnknownMember causes at the other side
// (RFC 8446, bad_certificate); crypto/tls has no value for it.
func isStranger(err error) bool {
	return strings.Contains(err.Error(), "remote error: tls: bad certificate")
}

// send returns the response if the worker agreed.
func (r *remote) send(ctx context.Context, method, path string, in []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.base+path, bytes.NewReader(in))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.name, err)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		hint := netHint(err)
		if u := (*url.Error)(nil); errors.As(err, &u) {
			err = fmt.Errorf("%s: %w", req.URL.Host, u.Err) // without method and path
		}
		return nil, fmt.Errorf("%s: %s: %w", r.name, hint, err)
	}
	if resp.StatusCode/100 == 2 {
		return resp, nil
	}
	defer resp.Body.Close()
	var no Refusal
	body, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if json.Unmarshal(body, &no) != nil || no.Error == "" {
		no.Error = resp.Status
	}
	return nil, &refused{r.name, resp.StatusCode, clean(no.Error, 4000)}
}

// refused is a worker's answer that it will not.
type refused struct {
	name   string
	status int
	why    string
}

func (r *refused) Error() string { return r.name + ": " + r.why }

// netHint says what a failed call usually means.
func netHint(err error) string {
	var t interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrUnknownMember):
		return "another process answers at its address (was the worker restarted?)"
	case isStranger(err):
		return "its worker does not know this coordinator (does gossip, UDP, reach it?)"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "its worker does not listen any more"
	case errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return "no route to it"
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &t) && t.Timeout():
		return "its worker does not answer (stopped, or a firewall drops packets)"
	}
	return "cannot reach its worker"
}

// events gives every event of a job to each, until the stream ends.
func (r *remote) events(ctx context.Context, job string, each func(Event)) error {
	resp, err := r.send(ctx, http.MethodGet, PathJob+"/"+job+"/events", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewScanner(resp.Body)
	lines.Buffer(make([]byte, 64<<10), MaxEvent)
	for lines.Scan() {
		var e Event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			return fmt.Errorf("%s: what it sent is no event: %w", r.name, err)
		}
		each(e)
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	return io.EOF
}
