// Package house tests how the packages are built, not what they do: which may import which, and what no file may hold.
package house

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/compactproxy/compactproxy"

// rooms are the packages below the module, each with those of the module that it may import.
// A new package is entered here first.
var rooms = map[string][]string{
	"cmd/compactproxy": {
		"internal/compactor", "internal/config", "internal/demo", "internal/proxy", "internal/remote", "internal/store",
		"internal/tokens", "internal/wire",
	},
	"internal/proxy":     {"internal/compactor", "internal/tokens", "internal/wire"},
	"internal/wire":      {"internal/compactor"},
	"internal/tokens":    {"internal/compactor"},
	"internal/remote":    {"internal/compactor", "internal/store", "internal/wire"},
	"internal/store":     {},
	"internal/config":    {},
	"internal/compactor": {},
	"internal/demo":      {},
}

// homes are the packages of others that only some rooms may import, by prefix of the import path.
var homes = map[string][]string{
	"github.com/go-chi/":                {"internal/proxy"},
	"github.com/pkoukk/tiktoken-go":     {"internal/tokens", "internal/demo"},
	"github.com/prometheus/":            {"internal/proxy", "cmd/compactproxy"},
	"github.com/spf13/viper":            {"internal/config"},
	"os":                                {"cmd/compactproxy", "internal/store"}, // and os/exec, os/signal
	"go.etcd.io/bbolt":                  {"internal/store"},
	"github.com/redis/go-redis":         {"internal/store"},
	"github.com/sashabaranov/go-openai": {"internal/remote"},
	"github.com/go-json-experiment/":    {"internal/wire", "internal/tokens"},
	"github.com/klauspost/compress/":    {"internal/proxy", "internal/demo"},
	"github.com/andybalholm/brotli":     {"internal/proxy"},
}

func TestRoomsImportInOneDirection(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range readSources(t) {
		seen[s.room] = true
		allowed, known := rooms[s.room]
		if !known {
			t.Errorf("%s: %s is not among the rooms", s.path, s.room)
		}
		for _, path := range s.imports() {
			if own, ok := strings.CutPrefix(path, module+"/"); ok && !slices.Contains(allowed, own) {
				t.Errorf("%s: %s must not import %s", s.path, s.room, own)
			}
		}
	}
	for room := range rooms {
		if !seen[room] {
			t.Errorf("%s is among the rooms, but there is no such package", room)
		}
	}
}

func TestLibrariesStayInTheirRooms(t *testing.T) {
	used := map[string]bool{}
	for _, s := range readSources(t) {
		for _, path := range s.imports() {
			for prefix, allowed := range homes {
				if !strings.HasPrefix(path, prefix) {
					continue
				}
				used[prefix] = true
				if !slices.Contains(allowed, s.room) {
					t.Errorf("%s: %s must not import %s", s.path, s.room, path)
				}
			}
		}
	}
	for prefix := range homes {
		if !used[prefix] {
			t.Errorf("nothing imports %s: its entry guards nothing", prefix)
		}
	}
}

func TestFilesKeepTheHouseRules(t *testing.T) {
	for _, s := range readSources(t) {
		for _, v := range violations(s.files, s.file) {
			t.Errorf("%s:%d: %s", s.path, v.line, v.what)
		}
	}
}

// source is one Go file of the program.
type source struct {
	room  string
	path  string
	files *token.FileSet
	file  *ast.File
}

func (s source) imports() []string {
	var paths []string
	for _, spec := range s.file.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value) // the parser checked it
		paths = append(paths, importPath)
	}
	return paths
}

// readSources parses every Go file of the program but its tests, whatever platform it is for. It reads them itself rather
// than run `go list`, so that the go command knows what the outcome depends on and does not repeat a cached one.
func readSources(t *testing.T) []source {
	t.Helper()
	root := filepath.Join("..", "..")
	var sources []source
	for _, top := range []string{"cmd", "internal"} {
		err := filepath.WalkDir(filepath.Join(root, top), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, 0)
			if err != nil {
				return err
			}
			path, err = filepath.Rel(root, path)
			sources = append(sources, source{filepath.ToSlash(filepath.Dir(path)), path, files, file})
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return sources
}
