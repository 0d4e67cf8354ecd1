package progress

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable replaces characters that control a terminal or the writing direction by escape
// sequences of Go. It keeps tabs and ends of lines. Nodes and servers write some of the printed
// texts, such as a version or an error. Without Printable, such a text could change the contents of
// the terminal and of the clipboard.
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

// controls reports whether Printable replaces a character. A byte that is not UTF-8 may control a
// terminal with another character set.
func controls(r rune) bool {
	return r != '\n' && r != '\t' &&
		(unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == utf8.RuneError)
}
