// Command problems prints the table of all problems that the program can
// report, as it finds them in the source below the given directories: name,
// text and remedy of each step.Problem. Values that are known only at run time
// are "…". `make docs` writes the table, and a test compares it.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	table, err := tableOf(os.Args[1:]...)
	if err == nil {
		out := json.NewEncoder(os.Stdout)
		out.SetIndent("", " ")
		out.SetEscapeHTML(false)
		err = out.Encode(table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
