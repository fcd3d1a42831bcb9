package house

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	maxFileLines     = 450
	maxFunctionLines = 80
)

// globals are the names in packages of others that use state of the whole process. An empty list bans the import itself:
// such a package registers something when it is imported.
var globals = map[string][]string{
	"expvar":         {},
	"net/http/pprof": {},
	"net/http":       {"DefaultServeMux", "DefaultClient", "Handle", "HandleFunc", "Get", "Head", "Post", "PostForm"},
	"log":            {"Default", "Print", "Printf", "Println", "Fatal", "Fatalf", "Fatalln", "Panic", "Panicf", "Panicln"},
	"log/slog": {
		"Default", "SetDefault", "With", "Debug", "Info", "Warn", "Error", "Log", "LogAttrs",
		"DebugContext", "InfoContext", "WarnContext", "ErrorContext",
	},
	"github.com/prometheus/client_golang/prometheus": {
		"DefaultRegisterer", "DefaultGatherer", "Register", "MustRegister", "Unregister",
	},
	"github.com/prometheus/client_golang/prometheus/promauto": {
		"NewCounter", "NewCounterVec", "NewCounterFunc", "NewGauge", "NewGaugeVec", "NewGaugeFunc",
		"NewHistogram", "NewHistogramVec", "NewSummary", "NewSummaryVec", "NewUntypedFunc",
	},
	"github.com/prometheus/client_golang/prometheus/promhttp": {"Handler"},
}

// violation is one place where a file breaks a rule.
type violation struct {
	line int
	what string
}

// violations returns the rules that a file outside tests breaks, from its top to its bottom.
func violations(files *token.FileSet, file *ast.File) []violation {
	found := append(violatedSizes(files, file), usedGlobals(files, file)...)
	slices.SortStableFunc(found, func(a, b violation) int { return a.line - b.line })
	return found
}

func violatedSizes(files *token.FileSet, file *ast.File) []violation {
	var found []violation
	if lines := files.File(file.FileStart).LineCount(); lines > maxFileLines {
		found = append(found, violation{1, fmt.Sprintf("the file has %d lines, more than %d", lines, maxFileLines)})
	}
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		if !ok {
			continue
		}
		first, last := files.Position(function.Pos()).Line, files.Position(function.End()).Line
		if lines := last - first + 1; lines > maxFunctionLines {
			found = append(found, violation{first, fmt.Sprintf("%s has %d lines, more than %d", function.Name.Name, lines, maxFunctionLines)})
		}
		if function.Recv == nil && function.Name.Name == "init" {
			found = append(found, violation{first, "there is an init function"})
		}
	}
	return found
}

func usedGlobals(files *token.FileSet, file *ast.File) []violation {
	var found []violation
	banned := map[string][]string{} // by the name of the import in this file
	for _, spec := range file.Imports {
		importPath, _ := strconv.Unquote(spec.Path.Value) // the parser checked it
		names, ok := globals[importPath]
		if !ok {
			continue
		}
		name := path.Base(importPath)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if len(names) == 0 || name == "." {
			found = append(found, violation{files.Position(spec.Pos()).Line, "imports " + importPath})
		}
		banned[name] = names
	}
	ast.Inspect(file, func(node ast.Node) bool {
		selector, ok := node.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		// An identifier with an object is a local name that hides the import.
		if left, ok := selector.X.(*ast.Ident); ok && left.Obj == nil && slices.Contains(banned[left.Name], selector.Sel.Name) {
			found = append(found, violation{files.Position(node.Pos()).Line, "uses " + left.Name + "." + selector.Sel.Name})
		}
		return true
	})
	return found
}

func TestRulesFindWhatBreaksThem(t *testing.T) {
	lines := func(n int) string { return string(slices.Repeat([]byte("\n"), n)) }
	tests := map[string]struct {
		source string
		want   []violation
	}{
		"a file of 450 lines is fine":      {"package p" + lines(450), nil},
		"a longer file is not":             {"package p" + lines(451), []violation{{1, "the file has 451 lines, more than 450"}}},
		"a function of 80 lines is fine":   {"package p\nfunc f() {" + lines(79) + "}", nil},
		"a longer function is not":         {"package p\nfunc f() {" + lines(80) + "}", []violation{{2, "f has 81 lines, more than 80"}}},
		"an init function is not fine":     {"package p\nfunc init() {}", []violation{{2, "there is an init function"}}},
		"a method named init is fine":      {"package p\ntype t int\nfunc (t) init() {}", nil},
		"a logger that is passed is fine":  {"package p\nimport \"log/slog\"\nfunc f(l *slog.Logger) { l.Info(``) }", nil},
		"the default logger is not":        {"package p\nimport \"log/slog\"\nvar l = slog.Default()", []violation{{3, "uses slog.Default"}}},
		"nor is a function that uses it":   {"package p\nimport \"log/slog\"\nfunc f() { slog.Info(``) }", []violation{{3, "uses slog.Info"}}},
		"nor under another name":           {"package p\nimport s \"log/slog\"\nvar l = s.Default()", []violation{{3, "uses s.Default"}}},
		"nor without a name":               {"package p\nimport . \"log/slog\"\nvar l = Default()", []violation{{2, "imports log/slog"}}},
		"a local name is no import":        {"package p\nimport \"log/slog\"\nfunc f(slog *slog.Logger) { slog.Info(``) }", nil},
		"the default mux is not fine":      {"package p\nimport \"net/http\"\nvar m = http.DefaultServeMux", []violation{{3, "uses http.DefaultServeMux"}}},
		"nor is what registers there":      {"package p\nimport _ \"net/http/pprof\"", []violation{{2, "imports net/http/pprof"}}},
		"the default registry is not fine": {"package p\nimport \"github.com/prometheus/client_golang/prometheus\"\nvar r = prometheus.DefaultRegisterer", []violation{{3, "uses prometheus.DefaultRegisterer"}}},
		"a factory on a registry is fine":  {"package p\nimport \"github.com/prometheus/client_golang/prometheus/promauto\"\nvar c = promauto.With(nil).NewCounter", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, "p.go", test.source, 0)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, violations(files, file), cmp.AllowUnexported(violation{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}
