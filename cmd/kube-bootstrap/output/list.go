package output

import (
	"io"
	"slices"

	"github.com/spf13/cobra"
)

// ListFormat is a way to print a list: a Format, or wide or name.
type ListFormat Format

const (
	wide = "wide" // the table with all its columns
	name = "name" // one name per line
)

const listWords = "table, json, yaml, wide, name, jsonpath=TEMPLATE or go-template=TEMPLATE"

var listFormats = append(slices.Clone(Formats), wide, name)

// AddListFlag gives a command that prints a list its -o flag.
func AddListFlag(c *cobra.Command) *ListFormat {
	return (*ListFormat)(addFlag(c, listFormats, listWords))
}

// Column is a column of the table of a list.
type Column[T any] struct {
	Head string
	Cell func(T) string
	Wide bool // shown with -o wide only
}

// PrintList writes a list of objects of a kind. The first column is the name of an object.
func PrintList[T any](f ListFormat, out io.Writer, kind string, all []T, columns []Column[T]) error {
	head := true
	switch f {
	case name:
		columns, head = columns[:1], false
	case ListFormat(Table):
		columns = slices.DeleteFunc(slices.Clone(columns), func(c Column[T]) bool { return c.Wide })
	case wide:
	default:
		return Format(f).Print(out, kind, all, nil)
	}
	return Table.Print(out, kind, all, func(w io.Writer) { rows(w, head, all, columns) })
}

func rows[T any](w io.Writer, head bool, all []T, columns []Column[T]) {
	if head {
		Row(w, cells(columns, func(c Column[T]) string { return c.Head })...)
	}
	for _, one := range all {
		Row(w, cells(columns, func(c Column[T]) string { return c.Cell(one) })...)
	}
}

func cells[T any](columns []Column[T], cell func(Column[T]) string) (row []string) {
	for _, c := range columns {
		row = append(row, cell(c))
	}
	return row
}
