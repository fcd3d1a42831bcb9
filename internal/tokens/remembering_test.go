package tokens

import (
	"strings"
	"testing"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// countingCounter counts how often it measures.
type countingCounter struct {
	Counter
	measured int
}

func (c *countingCounter) Measure(item compactor.Item) compactor.Size {
	c.measured++
	return c.Counter.Measure(item)
}

func TestARememberingCounterMeasuresTheSameItemOnce(t *testing.T) {
	library, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range Kinds() {
		plain, err := library.Counter(Spec{Kind: kind})
		if err != nil {
			t.Fatal(err)
		}
		counting := &countingCounter{Counter: plain}
		counter := NewCache(100).Remember(counting)
		long := strings.Repeat("some text ", 100)
		items := []compactor.Item{
			{Role: compactor.ToolResult, Text: long, HasText: true},
			{Role: compactor.User, Text: long, HasText: true},
			{Role: compactor.User, Text: long},
			{Role: compactor.User, Text: long, HasText: true, Prefix: "note"},
			{Role: compactor.User, Text: long, HasText: true, Name: "note"},
			{Role: compactor.ToolResult, Text: long, HasText: true, Tool: "note"},
			{Role: compactor.ToolResult, Text: long, HasText: true, Failed: true},
			{Role: compactor.ToolResult, Text: long, HasText: true, Hidden: 800},
		}
		for range 3 {
			for i, item := range items {
				if got, want := counter.Measure(item), plain.Measure(item); got != want {
					t.Errorf("%s, item %d: got %v, want %v", kind, i, got, want)
				}
			}
		}
		if counting.measured != len(items) {
			t.Errorf("%s: measured %d times, want %d", kind, counting.measured, len(items))
		}
	}
}

func TestARememberingCounterMeasuresCallsAndMediaItself(t *testing.T) {
	library, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	plain, err := library.Counter(Spec{})
	if err != nil {
		t.Fatal(err)
	}
	counter := NewCache(100).Remember(plain)
	item := compactor.Item{Role: compactor.Assistant, Text: strings.Repeat("some text ", 100), HasText: true}
	bare := counter.Measure(item)
	item.Calls = []compactor.Call{{Tool: "read"}}
	called := counter.Measure(item)
	item.Media.Images = make([]compactor.Image, 1)
	if pictured := counter.Measure(item); called == bare || pictured == called {
		t.Fatalf("sizes %v, %v and %v", bare, called, pictured)
	}
}

func TestARememberingCounterAllocatesNothing(t *testing.T) {
	counter := NewCache(100).Remember(newTestCounter(t, Spec{}))
	item := compactor.Item{Role: compactor.User, Text: strings.Repeat("some text ", 100), HasText: true}
	counter.Measure(item)
	if n := testing.AllocsPerRun(100, func() { counter.Measure(item) }); n > 0 {
		t.Errorf("%v allocations to look a size up", n)
	}
}
