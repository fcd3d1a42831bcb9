package tokens

import (
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// megabyte repeats a text of testdata.
func megabyte(b *testing.B, file string) string {
	b.Helper()
	text, err := os.ReadFile("testdata/texts/" + file)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(text), 1<<20/len(text))
}

func BenchmarkLoad(b *testing.B) {
	before := cpuTime(b)
	for b.Loop() {
		if _, err := Load(); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((cpuTime(b)-before).Milliseconds())/float64(b.N), "cpu-ms/op")
}

// cpuTime is the time that the process has spent on all cores.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// BenchmarkCount counts a megabyte of text. The first two are the same text by this package and by tiktoken-go.
func BenchmarkCount(b *testing.B) {
	e := loadedEncoding(b, O200KBase)
	texts := unbrokenRuns(1 << 20)
	for _, file := range []string{"source.go.txt", "pretty.json", "korean.txt", "chinese.txt", "base64.txt"} {
		texts[file] = megabyte(b, file)
	}
	prose := megabyte(b, "prose.txt")
	run := func(name, text string, count func(string) int) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			tokens := 0
			for b.Loop() {
				tokens = count(text)
			}
			b.ReportMetric(float64(tokens), "tokens")
		})
	}
	run("prose", prose, e.count)
	run("prose by tiktoken-go", prose, func(text string) int { return len(oracle(b, O200KBase).EncodeOrdinary(text)) })
	for name, text := range texts {
		run(name, text, e.count)
	}
}

// BenchmarkMessage measures a message of 4 KB: by counting, and by finding it in the cache.
func BenchmarkMessage(b *testing.B) {
	counter := newTestCounter(b, Spec{})
	text := megabyte(b, "prose.txt")[:4096]
	item := compactor.Item{Role: compactor.User, Text: text, HasText: true}
	b.Run("counted", func(b *testing.B) {
		for b.Loop() {
			counter.Measure(item)
		}
	})
	b.Run("cached", func(b *testing.B) {
		cache, raw := NewCache(1000), []byte(text)
		cache.Put(cache.Key(counter.ID(), raw), counter.Measure(item))
		for b.Loop() {
			if _, ok := cache.Get(cache.Key(counter.ID(), raw)); !ok {
				b.Fatal("not found")
			}
		}
	})
}
