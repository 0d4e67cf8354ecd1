package main

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Messages and attributes of linux/netfilter/nfnetlink_queue.h.
const (
	queue       = 0
	msgVerdict  = unix.NFNL_SUBSYS_QUEUE<<8 | 1
	msgConfig   = unix.NFNL_SUBSYS_QUEUE<<8 | 2
	cfgCommand  = 1
	cfgParams   = 2
	cfgMaxLen   = 3
	packetHdr   = 1
	verdictHdr  = 2
	commandBind = 1
	copyMeta    = 1
	accept      = 1
)

// delay lets the packets of queue 0 pass after some time each. The kernels of
// test machines often lack the netem queue discipline.
func delay(latency, during time.Duration) error {
	s, err := nl.Subscribe(unix.NETLINK_NETFILTER)
	if err != nil {
		return err
	}
	defer s.Close()
	params := append(binary.BigEndian.AppendUint32(nil, 0xffff), copyMeta)
	for _, attr := range []*nl.RtAttr{
		nl.NewRtAttr(cfgCommand, []byte{commandBind, 0, 0, unix.AF_INET}),
		nl.NewRtAttr(cfgParams, params),
		nl.NewRtAttr(cfgMaxLen, binary.BigEndian.AppendUint32(nil, 1<<16)),
	} {
		if err := s.Send(message(msgConfig, attr)); err != nil {
			return err
		}
	}
	time.AfterFunc(during, s.Close)
	for end := time.Now().Add(during); time.Now().Before(end); {
		packets, _, err := s.Receive()
		if errors.Is(err, unix.ENOBUFS) {
			continue // packets that do not fit into the socket are lost, as on a slow line
		}
		if err != nil {
			break
		}
		for _, p := range packets {
			if id, ok := packetID(p.Data); ok {
				time.AfterFunc(latency, func() {
					verdict := append(binary.BigEndian.AppendUint32(nil, accept), id...)
					_ = s.Send(message(msgVerdict, nl.NewRtAttr(verdictHdr, verdict)))
				})
			}
		}
	}
	return nil
}

// message is one for queue 0, with the header that all of netfilter share.
func message(kind int, attr *nl.RtAttr) *nl.NetlinkRequest {
	m := nl.NewNetlinkRequest(kind, 0)
	m.AddData(&nl.Nfgenmsg{NfgenFamily: unix.AF_INET, Version: 0, ResId: queue})
	m.AddData(attr)
	return m
}

// packetID is what the verdict on a packet must name.
func packetID(data []byte) ([]byte, bool) {
	if len(data) < nl.SizeofNfgenmsg {
		return nil, false
	}
	attrs, err := nl.ParseRouteAttr(data[nl.SizeofNfgenmsg:])
	if err != nil {
		return nil, false
	}
	for _, a := range attrs {
		if a.Attr.Type == packetHdr && len(a.Value) >= 4 {
			return append([]byte(nil), a.Value[:4]...), true
		}
	}
	return nil, false
}
