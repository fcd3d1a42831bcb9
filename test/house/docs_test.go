package house

import (
	"encoding/json"
	"io/fs"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/config"
)

// aboutCompactors is the document that describes every compactor.
const aboutCompactors = "docs/compactors.md"

// documents returns the names of the README and of all files in docs and below it.
func documents(t *testing.T) []string {
	t.Helper()
	root := filepath.Join("..", "..")
	names := []string{"README.md"}
	err := filepath.WalkDir(filepath.Join(root, "docs"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		name, err := filepath.Rel(root, path)
		names = append(names, filepath.ToSlash(name))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// TestConfigurationsInTheDocumentsLoad demands that they load without a warning, too: what is shown is what people copy.
func TestConfigurationsInTheDocumentsLoad(t *testing.T) {
	found := map[string]int{}
	for _, name := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(readFile(t, name), -1) {
			found[name]++
			if _, warnings, err := config.Load(config.Source{File: []byte(block[1])}); err != nil || len(warnings) > 0 {
				t.Errorf("%s: %v %v in\n%s", name, err, warnings, block[1])
			}
		}
	}
	if found["README.md"] == 0 || found[aboutCompactors] < 10 {
		t.Errorf("found %v", found)
	}
}

func TestJSONInTheDocumentsIsValid(t *testing.T) {
	found := 0
	for _, name := range documents(t) {
		for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(readFile(t, name), -1) {
			found++
			if !json.Valid([]byte(block[1])) {
				t.Errorf("%s: not JSON:\n%s", name, block[1])
			}
		}
	}
	if found == 0 {
		t.Error("there is none")
	}
}

func TestEveryCompactorIsDescribed(t *testing.T) {
	text := readFile(t, aboutCompactors)
	for _, name := range config.CompactorTypes() {
		_, section, found := strings.Cut(text, "\n### "+name+"\n")
		if !found {
			t.Errorf("there is no section on %s", name)
			continue
		}
		section, _, _ = strings.Cut(section, "\n### ")
		for _, word := range append(keysOf(reflect.TypeOf(configured(t, name))), "Origin:", "Keeps:", "Loses:") {
			if !mentions(section, word) {
				t.Errorf("the section on %s does not mention %s", name, word)
			}
		}
	}
}

func TestEverySettingOfCompactionIsDescribed(t *testing.T) {
	text := readFile(t, aboutCompactors)
	for _, of := range []reflect.Type{
		reflect.TypeFor[config.Compaction](), reflect.TypeFor[config.Approximate](), reflect.TypeFor[config.Condition](),
	} {
		for _, key := range keysOf(of) {
			if !mentions(text, key) {
				t.Errorf("%s is not mentioned", key)
			}
		}
	}
}

func TestEveryFateIsDescribed(t *testing.T) {
	text := readFile(t, aboutCompactors)
	for _, fate := range []compactor.FateKind{
		compactor.FateKept, compactor.FatePinned, compactor.FateShortened, compactor.FateReplaced, compactor.FateRemoved,
		compactor.FateQuoted, compactor.FateNoted, compactor.FateAdded,
	} {
		if !mentions(text, string(fate)) {
			t.Errorf("%s is not mentioned", fate)
		}
	}
	for _, pin := range []compactor.Pin{
		compactor.PinHead, compactor.PinOpening, compactor.PinNewestUser, compactor.PinSystem, compactor.PinUnknownItem,
		compactor.PinNewest, compactor.PinOpenCall,
	} {
		if !mentions(text, string(pin)) {
			t.Errorf("%s is not mentioned", pin)
		}
	}
}

// configured returns the settings of a type of compactor, as the configuration holds them.
func configured(t *testing.T, name string) config.Compactor {
	t.Helper()
	file := "compaction: {chain: [{type: " + name + "}]}"
	if name == "webhook" { // the only one with a parameter that has no default
		file = "compaction: {chain: [{type: webhook, url: http://127.0.0.1:9000/compact}]}"
	}
	cfg, _, err := config.Load(config.Source{File: []byte(file)})
	if err != nil {
		t.Fatal(err)
	}
	return cfg.Compaction.Chain[0].Compactor
}

// keysOf returns the keys of the file that the fields of a struct stand for.
func keysOf(of reflect.Type) []string {
	var keys []string
	for _, field := range reflect.VisibleFields(of) {
		if key, _, _ := strings.Cut(field.Tag.Get("mapstructure"), ","); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// mentions reports whether a text holds a word that stands in backquotes or begins what does, as in `mode` or `mode: pass`.
// A word with a colon may stand anywhere.
func mentions(text, word string) bool {
	if strings.HasSuffix(word, ":") {
		return strings.Contains(text, word)
	}
	return strings.Contains(text, "`"+word+"`") || strings.Contains(text, "`"+word+":")
}
