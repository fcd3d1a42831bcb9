package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
)

func TestDamagedFileIsMovedAwayAndReplaced(t *testing.T) {
	content := validFile(t)
	noise := make([]byte, len(content))
	for i, random := 0, rand.New(rand.NewPCG(3, 4)); i < len(noise); i++ {
		noise[i] = byte(random.Uint32())
	}
	secret := bytes.Index(content, []byte("value 7 "))
	if secret < 0 {
		t.Fatal("the test does not know where a value is")
	}
	flipped := bytes.Clone(content)
	flipped[secret] ^= 1
	tests := map[string][]byte{
		"a text":                              []byte("listen: 127.0.0.1:8787\n"),
		"random bytes":                        noise,
		"a valid start with random bytes":     append(bytes.Clone(content[:8192]), noise[8192:]...),
		"only zeros":                          make([]byte, len(content)),
		"one page":                            content[:4096],
		"the two pages that say where all is": content[:8192],
		"a page and a half":                   content[:6000],
		"half of a file":                      content[:len(content)/2],
		"the list of free pages":              withWrongFreePages(content),
		"one bit of a value":                  flipped,
	}
	for name, damaged := range tests {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			wantNoError(t, os.WriteFile(path, damaged, 0o600))
			f := openTestFile(t, path, Limits{MaxBytes: testBytes, TTL: testTTL})
			if f.Damage() == nil || !strings.Contains(f.Damage().Error(), path+".damaged") {
				t.Errorf("the damage is reported as %v", f.Damage())
			}
			if moved, err := os.ReadFile(path + ".damaged"); err != nil || !bytes.Equal(moved, damaged) {
				t.Errorf("the damaged file was not kept: %v", err)
			}
			wantMissing(t, f, key(7))
			mustAdd(t, f, key(7), "new")
			wantValue(t, f, key(7), "new")
		})
	}
}

// Whatever is damaged, no wrong value comes back and nothing panics.
func TestFileWithRandomDamageNeverReturnsAWrongValue(t *testing.T) {
	content, random := validFile(t), rand.New(rand.NewPCG(5, 6))
	replaced := 0
	for range 150 {
		damaged := bytes.Clone(content)
		for range 1 + random.IntN(8) {
			damaged[random.IntN(len(damaged))] ^= byte(1 + random.IntN(255))
		}
		if random.IntN(4) == 0 {
			damaged = damaged[:random.IntN(len(damaged))]
		}
		if checkDamaged(t, damaged) {
			replaced++
		}
	}
	t.Logf("%d of 150 files were replaced", replaced)
	if replaced < 75 {
		t.Error("hardly any damage was noticed")
	}
}

func checkDamaged(t *testing.T, damaged []byte) (replaced bool) {
	t.Helper()
	path := testPath(t)
	wantNoError(t, os.WriteFile(path, damaged, 0o600))
	f, err := OpenFile(path, Limits{MaxBytes: testBytes, TTL: testTTL})
	if err != nil {
		t.Error(err)
		return false
	}
	defer func() { _ = f.Close() }()
	for i := range 100 {
		value, found, err := f.Get(t.Context(), key(i))
		if found && (err != nil || string(value) != fileValue(i)) {
			t.Errorf("the value of key %d is wrong", i)
		}
	}
	mustAdd(t, f, key(1000), "new")
	wantValue(t, f, key(1000), "new")
	return f.Damage() != nil
}

func TestFileDamagedWhileOpenAnswersWithErrors(t *testing.T) {
	path := testPath(t)
	wantNoError(t, os.WriteFile(path, validFile(t), 0o600))
	f := openTestFile(t, path, Limits{MaxBytes: testBytes, TTL: testTTL})
	wantNoError(t, os.Truncate(path, 8192))
	if _, _, err := f.Get(t.Context(), key(7)); !errors.Is(err, errDamaged) {
		t.Errorf("Get gives %v", err)
	}
	if _, err := f.Add(t.Context(), key(1000), nil); !errors.Is(err, errDamaged) {
		t.Errorf("Add gives %v", err)
	}
	if err := f.Ping(t.Context()); !errors.Is(err, errDamaged) {
		t.Errorf("Ping gives %v", err)
	}
	if err := f.Close(); !errors.Is(err, errDamaged) { // it could not write the uses
		t.Errorf("Close gives %v", err)
	}
}

func TestForeignRecordsAreDamage(t *testing.T) {
	tests := map[string]func(values, uses *bbolt.Bucket) error{
		"a short key":           func(values, _ *bbolt.Bucket) error { return values.Put([]byte("key"), []byte("value")) },
		"a record of no bytes":  func(values, _ *bbolt.Bucket) error { k := key(1); return values.Put(k[:], nil) },
		"a value without a use": func(_, uses *bbolt.Bucket) error { k := key(7); return uses.Delete(k[:]) },
	}
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			path := testPath(t)
			wantNoError(t, os.WriteFile(path, validFile(t), 0o600))
			f := openTestFile(t, path, Limits{MaxBytes: testBytes})
			wantNoError(t, f.db.update(change))
			wantNoError(t, f.Close())
			if f := openTestFile(t, path, Limits{MaxBytes: testBytes}); f.Damage() == nil {
				t.Error("not noticed")
			}
		})
	}
}

// validFile returns a file with a hundred entries.
func validFile(t *testing.T) []byte {
	t.Helper()
	path := testPath(t)
	f := openTestFile(t, path, Limits{MaxBytes: testBytes, TTL: testTTL})
	f.db.bolt.NoSync = true
	for i := range 100 {
		mustAdd(t, f, key(i), fileValue(i))
	}
	wantNoError(t, f.Close())
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func fileValue(i int) string { return fmt.Sprintf("value %d %s", i, strings.Repeat("v", 50*i)) }

// withWrongFreePages returns the file with a first free page that is far behind its end, in the list that counts and in
// those that are left from before. A page starts with 8 bytes of its number, 2 of its type, 2 of how many numbers there
// are, and 4 that do not matter here.
func withWrongFreePages(content []byte) []byte {
	const freePages = 0x10
	damaged := bytes.Clone(content)
	for start := 0; start < len(damaged); start += os.Getpagesize() {
		page := damaged[start:]
		if int(binary.NativeEndian.Uint64(page)) == start/os.Getpagesize() && binary.NativeEndian.Uint16(page[8:]) == freePages {
			binary.NativeEndian.PutUint64(page[16:], 1<<40)
		}
	}
	return damaged
}
