// Package runlog reads the log of a run of etcd: why it ended, or why it does not answer.
package runlog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// LostEntries reads the log of a run of etcd: the WAL ends before the database, and
// etcd has failed to write since. After a power failure the index of the WAL may lag
// too, but then etcd writes. Without a leader, etcd cannot write either.
func LostEntries(log string) (wal, database int64, is bool) {
	led := false
	for text := range strings.Lines(log) {
		var l line
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		led = led && !Says(l.Msg, " lost leader ") || Says(l.Msg, " elected leader ")
		switch l.Msg {
		case "restore consistentIndex":
			database = l.Index
		case "restarting local member":
			wal = l.Commit
		case "failed to publish local member to cluster through raft":
			is = led && wal < database
		case "published local member to cluster through raft":
			return wal, database, false
		}
	}
	return wal, database, is
}

type line struct {
	Level  string `json:"level"`
	Msg    string `json:"msg"`
	Error  string `json:"error"`
	Index  int64  `json:"index"`
	Commit int64  `json:"commit-index"`
}

func (l line) String() string {
	if l.Error == "" {
		return l.Msg
	}
	return l.Msg + ": " + l.Error
}

// BadFlag returns etcd's complaint about a flag or its value.
func BadFlag(log string) string {
	for text := range strings.Lines(log) {
		var l line
		text = strings.TrimSpace(text)
		switch {
		case strings.HasPrefix(text, "invalid value "), strings.HasPrefix(text, "flag provided but not defined"):
			return text
		case json.Unmarshal([]byte(text), &l) == nil && l.Msg == "failed to verify flags":
			return l.Error
		}
	}
	return ""
}

// LastComplaint returns the last fatal line or panic of a log, else the last error.
func LastComplaint(log string) string {
	var failed, fatal string
	for text := range strings.Lines(log) {
		var l line
		if crash, ok := strings.CutPrefix(text, "panic: "); ok && fatal == "" {
			fatal = strings.TrimSpace(crash)
		}
		if json.Unmarshal([]byte(text), &l) != nil {
			continue
		}
		switch l.Level {
		case "fatal", "panic":
			fatal = l.String()
		case "error":
			failed = l.String()
		}
	}
	return cmp.Or(fatal, failed)
}

// Says reports whether a text contains one of the words.
func Says(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.Contains(strings.ToLower(text), word) })
}
