package main

import (
	"encoding/gob"
	"fmt"
	"net"
	"time"
)

// meeting is where the processes exchange what they must know of each other.
type meeting struct {
	id    int
	peers []*conn // of process 1: all others; of the others: process 1
}

type conn struct {
	net.Conn
	enc *gob.Encoder
	dec *gob.Decoder
}

func newConn(c net.Conn) *conn { return &conn{c, gob.NewEncoder(c), gob.NewDecoder(c)} }

func meet(o *options) (*meeting, error) {
	m := &meeting{id: o.id, peers: make([]*conn, o.nodes-1)}
	if o.nodes == 1 {
		return m, nil
	}
	if o.id > 1 {
		m.peers = m.peers[:1]
		for end := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
			c, err := net.Dial("tcp", o.hub)
			if err == nil {
				m.peers[0] = newConn(c)
				return m, m.peers[0].enc.Encode(o.id)
			}
			if time.Now().After(end) {
				return nil, err
			}
		}
	}
	_, port, err := net.SplitHostPort(o.hub)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", ":"+port)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	for range o.nodes - 1 {
		c, err := l.Accept()
		if err != nil {
			return nil, err
		}
		x := newConn(c)
		var id int
		if err := x.dec.Decode(&id); err != nil {
			return nil, err
		}
		if id < 2 || id > o.nodes || m.peers[id-2] != nil {
			return nil, fmt.Errorf("process %d came, or came twice, to a meeting of %d", id, o.nodes)
		}
		m.peers[id-2] = x
	}
	return m, nil
}

// all gives every process what each of them brought, in order; nobody leaves
// before all have come.
func (m *meeting) all(mine []byte) ([][]byte, error) {
	if m.id > 1 {
		var out [][]byte
		if err := m.peers[0].enc.Encode(mine); err != nil {
			return nil, err
		}
		err := m.peers[0].dec.Decode(&out)
		return out, err
	}
	out := [][]byte{mine}
	for _, p := range m.peers {
		var b []byte
		if err := p.dec.Decode(&b); err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	for _, p := range m.peers {
		if err := p.enc.Encode(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (m *meeting) close() {
	for _, p := range m.peers {
		p.Close()
	}
}
