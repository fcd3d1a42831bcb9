package house

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"
)

func TestLinksInTheDocumentsLeadSomewhere(t *testing.T) {
	checked := 0
	for _, name := range documents(t) {
		for _, link := range relativeLinks(readFile(t, name)) {
			checked++
			if err := follow(t, name, link); err != nil {
				t.Errorf("%s: %s: %v", name, link, err)
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d links found", checked)
	}
}

// follow returns what is wrong with a link in a document: there is no such file, or no such heading in it.
func follow(t *testing.T, document, link string) error {
	target, fragment, _ := strings.Cut(link, "#")
	file := document
	if target != "" {
		file = path.Join(path.Dir(document), target)
	}
	if strings.HasPrefix(file, "../") {
		return fmt.Errorf("it leads out of the repository")
	}
	if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
		return err
	}
	if fragment != "" && !slices.Contains(anchors(readFile(t, file)), fragment) {
		return fmt.Errorf("there is no heading #%s", fragment)
	}
	return nil
}

// relativeLinks returns where the links in the prose of a document lead, but for those to other sites.
func relativeLinks(text string) []string {
	var links []string
	code, link, site := regexp.MustCompile("`[^`]*`"), regexp.MustCompile(`\]\(([^)\s]+)\)`), regexp.MustCompile(`^[a-z]+:`)
	for _, line := range prose(text) {
		line = code.ReplaceAllString(line, "") // the text of a link may be code, where it leads is not
		for _, match := range link.FindAllStringSubmatch(line, -1) {
			if !site.MatchString(match[1]) {
				links = append(links, match[1])
			}
		}
	}
	return links
}

// anchors returns the fragments of a document's headings as GitHub makes them: letters and digits in lower case, hyphens for
// spaces, and a number behind a name that came before.
func anchors(text string) []string {
	var found []string
	seen := map[string]int{}
	head, link := regexp.MustCompile(`^#{1,6} +(.+?)[ #]*$`), regexp.MustCompile(`\[([^]]*)\]\([^)]*\)`)
	for _, line := range prose(text) {
		heading := head.FindStringSubmatch(line)
		if heading == nil {
			continue
		}
		title := link.ReplaceAllString(heading[1], "$1")
		anchor := strings.Map(anchorRune, title)
		n := seen[anchor]
		seen[anchor]++
		if n > 0 {
			anchor = fmt.Sprintf("%s-%d", anchor, n)
		}
		found = append(found, anchor)
	}
	return found
}

func anchorRune(r rune) rune {
	switch {
	case r == ' ':
		return '-'
	case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
		return unicode.ToLower(r)
	default:
		return -1
	}
}

// prose returns the lines of a document outside fenced code.
func prose(text string) []string {
	var lines []string
	fence, fences := "", regexp.MustCompile("^ *(```+|~~~+)")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		mark := fences.FindStringSubmatch(line)
		switch {
		case mark == nil && fence == "":
			lines = append(lines, line)
		case mark != nil && fence == "":
			fence = mark[1]
		case mark != nil && strings.HasPrefix(mark[1], fence):
			fence = ""
		}
	}
	return lines
}

func TestLinksAndHeadingsAreFound(t *testing.T) {
	const text = "# A `name`: it's *new*\n\nSee [b](b.md#c), [`c`](../c/) and [d](https://example.com/).\n`[no](link.md)`\n" +
		"```sh\n# no heading\n[no](link.md)\n```\n## Twice ##\n## Twice\n### The [b](b.md) one\n## no_change-here\n"
	if diff := cmp.Diff([]string{"b.md#c", "../c/", "b.md"}, relativeLinks(text)); diff != "" {
		t.Errorf("links: %s", diff)
	}
	want := []string{"a-name-its-new", "twice", "twice-1", "the-b-one", "no_change-here"}
	if diff := cmp.Diff(want, anchors(text)); diff != "" {
		t.Errorf("headings: %s", diff)
	}
}

func TestALinkThatLeadsNowhereIsNoticed(t *testing.T) {
	tests := map[string]struct {
		link string
		ok   bool
	}{
		"a file is found":                           {"compactors.md", true},
		"a directory is found":                      {"../deploy/", true},
		"a heading in another file is found":        {"compactors.md#truncation", true},
		"a heading in the same file is found":       {"#speed", true},
		"a missing file is noticed":                 {"missing.md", false},
		"a missing heading is noticed":              {"compactors.md#missing", false},
		"a missing heading in this file is noticed": {"#missing", false},
		"a way out of the repository is noticed":    {"../../README.md", false},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if err := follow(t, "docs/architecture.md", test.link); (err == nil) != test.ok {
				t.Errorf("%v", err)
			}
		})
	}
}
