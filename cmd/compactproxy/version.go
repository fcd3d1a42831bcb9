package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
)

// version is set by the linker where there is no repository to read it from, as in an image build.
var version string

// build says which build of the program this is, as far as the Go toolchain recorded it.
type build struct {
	// version is the module's version, or "(devel)".
	version string
	// revision is the commit, with -dirty behind it when files were changed. It is empty when it was not recorded.
	revision string
}

// readBuild asks the binary.
func readBuild() build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return build{version: cmp.Or(version, "(unknown)")}
	}
	b := build{version: cmp.Or(version, info.Main.Version)}
	dirty := ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			b.revision = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "-dirty"
		}
	}
	b.revision += dirty
	return b
}

// runVersion prints one line, for scripts as for people.
func runVersion(_ context.Context, env environment) error {
	if err := newFlags("version").parse(env); err != nil {
		return err
	}
	b := readBuild()
	text := "compactproxy " + b.version
	if b.revision != "" {
		text += " revision " + b.revision
	}
	_, err := fmt.Fprintf(env.stdout, "%s %s %s/%s\n", text, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}
