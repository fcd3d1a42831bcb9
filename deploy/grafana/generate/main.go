// Command generate writes the Grafana dashboard of compactproxy as JSON to the standard output.
//
// The dashboard is written by a program, and not by hand or by Grafana, so that its expressions share their filters and a
// difference between two versions can be read.
package main

import (
	"fmt"
	"io"
	"os"
)

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// write writes the dashboard, indented and with a newline at its end.
func write(out io.Writer) error {
	text, err := render()
	if err != nil {
		return fmt.Errorf("building the dashboard: %w", err)
	}
	_, err = out.Write(text)
	return err
}
