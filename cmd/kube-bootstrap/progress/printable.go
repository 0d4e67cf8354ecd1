package progress

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable returns a text in which each character that controls a terminal or the direction of
// writing is an escape sequence, as in a string of Go. Tabs and ends of lines stay. Some texts
// are written by others: a node reports its version and its errors, and a server the reason of a
// refusal. They could otherwise change what is on the terminal, or its clipboard.
func Printable(text string) string {
	if !strings.ContainsFunc(text, controls) {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		switch _, size := utf8.DecodeRuneInString(text[i:]); {
		case !controls(r):
			b.WriteString(text[i : i+size])
		case size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[i])
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.String()
}

// controls reports whether a character is not printed as itself. A byte that is no UTF-8 may
// control a terminal with another character set.
func controls(r rune) bool {
	return r != '\n' && r != '\t' && (unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError)
}
