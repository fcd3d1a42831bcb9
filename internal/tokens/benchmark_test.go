package tokens

import (
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
)

// repeated repeats a text of testdata to about so many bytes.
func repeated(b *testing.B, file string, size int) string {
	b.Helper()
	text, err := os.ReadFile("testdata/texts/" + file)
	if err != nil {
		b.Fatal(err)
	}
	return strings.Repeat(string(text), size/len(text))
}

// BenchmarkLoad loads both vocabularies that a start loads.
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

// BenchmarkCount counts half a megabyte of each kind of text.
func BenchmarkCount(b *testing.B) {
	e := loadedEncoding(b, O200KBase)
	for _, file := range []string{
		"prose.txt", "source.go.txt", "pretty.json", "minified.json", "shell.txt", "korean.txt", "chinese.txt", "arabic.txt",
		"emoji.txt", "base64.txt", "hex.txt",
	} {
		text := repeated(b, file, 1<<19)
		b.Run(file, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			tokens := 0
			for b.Loop() {
				tokens = e.count(text)
			}
			b.ReportMetric(float64(tokens), "tokens")
		})
	}
}

// BenchmarkConversation counts 128,000 tokens in 250 messages as agents send them, and the same by tiktoken-go. The ratio
// is that of the medians.
func BenchmarkConversation(b *testing.B) {
	for _, name := range []string{O200KBase, CL100KBase} {
		b.Run(name, func(b *testing.B) {
			e, reference := loadedEncoding(b, name), oracle(b, name)
			messages := conversation(b)
			var ours, theirs []time.Duration
			tokens := 0
			for b.Loop() {
				var want int
				start := time.Now()
				for _, message := range messages {
					want += len(reference.EncodeOrdinary(message))
				}
				theirs = append(theirs, time.Since(start))
				tokens = 0
				start = time.Now()
				for _, message := range messages {
					tokens += e.count(message)
				}
				ours = append(ours, time.Since(start))
				if tokens != want {
					b.Fatalf("got %d tokens, tiktoken-go %d", tokens, want)
				}
			}
			b.ReportMetric(float64(median(theirs))/float64(median(ours)), "times-tiktoken-go")
			b.ReportMetric(float64(median(ours).Microseconds()), "µs")
			b.ReportMetric(float64(tokens), "tokens")
		})
	}
}

// conversation returns messages of which every other one is the result of a tool: code, JSON or output.
func conversation(b *testing.B) []string {
	b.Helper()
	prose := repeated(b, "prose.txt", 2000)
	results := []string{
		repeated(b, "source.go.txt", 3000), repeated(b, "shell.txt", 3000), repeated(b, "pretty.json", 3000),
		repeated(b, "minified.json", 3000), repeated(b, "source.py.txt", 3000),
	}
	var messages []string
	for i := range 125 {
		// Different beginnings, so that no two messages are the same.
		messages = append(messages, prose[7*i:], results[i%len(results)][i:])
	}
	return messages
}

// BenchmarkUnbrokenRuns compares a megabyte without a break with a megabyte of English: counted by this package, and by
// tiktoken-go. Growth is the time for 8 megabytes by that for one.
func BenchmarkUnbrokenRuns(b *testing.B) {
	e, reference := loadedEncoding(b, O200KBase), oracle(b, O200KBase)
	english := repeated(b, "prose.txt", 1<<20)
	runs, long := unbrokenRuns(1<<20), unbrokenRuns(8<<20)
	timed := func(count func()) time.Duration {
		start := time.Now()
		count()
		return time.Since(start)
	}
	var theirs []time.Duration
	for range 3 {
		theirs = append(theirs, timed(func() { reference.EncodeOrdinary(english) }))
	}
	for name, text := range runs {
		b.Run(name, func(b *testing.B) {
			var run, grown, plain []time.Duration
			for b.Loop() {
				plain = append(plain, timed(func() { e.count(english) }))
				run = append(run, timed(func() { e.count(text) }))
				grown = append(grown, timed(func() { e.count(long[name]) }))
			}
			b.ReportMetric(float64(median(run))/float64(median(theirs)), "of-tiktoken-go-english")
			b.ReportMetric(float64(median(run))/float64(median(plain)), "of-english")
			b.ReportMetric(float64(median(grown))/float64(median(run)), "growth-by-8")
		})
	}
}

func median(durations []time.Duration) time.Duration {
	slices.Sort(durations)
	return durations[len(durations)/2]
}

// BenchmarkMessage measures a message of 4 KB: by counting, and by finding it in the cache.
func BenchmarkMessage(b *testing.B) {
	counter := newTestCounter(b, Spec{})
	text := repeated(b, "prose.txt", 5000)[:4096]
	item := compactor.Item{Role: compactor.User, Text: text, HasText: true}
	b.Run("counted", func(b *testing.B) {
		for b.Loop() {
			counter.Measure(item)
		}
	})
	b.Run("cached", func(b *testing.B) {
		cache, raw := NewCache(1000), []byte(text)
		cache.Put(cache.Key(raw), counter.Measure(item))
		for b.Loop() {
			if _, ok := cache.Get(cache.Key(raw)); !ok {
				b.Fatal("not found")
			}
		}
	})
}
