package store

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"
)

func TestFileSurvivesARestart(t *testing.T) {
	path, limits := testPath(t), Limits{MaxBytes: testBytes, TTL: testTTL}
	f := openTestFile(t, path, limits)
	for i := range 100 {
		mustAdd(t, f, key(i), fmt.Sprint("value ", i))
	}
	mustAdd(t, f, key(100), "")
	wantNoError(t, f.Close())
	f = openTestFile(t, path, limits)
	wantNoError(t, f.Damage())
	for i := range 100 {
		wantValue(t, f, key(i), fmt.Sprint("value ", i))
	}
	wantValue(t, f, key(100), "")
}

func TestFileKeepsWhatWasAddedBeforeTheProcessWasKilled(t *testing.T) {
	path, limits := testPath(t), Limits{MaxBytes: testBytes, TTL: testTTL}
	f := openTestFile(t, path, limits)
	mustAdd(t, f, key(1), "one")
	wantValue(t, openTestFile(t, copyFile(t, path), limits), key(1), "one")
}

func TestFileIsForItsOwnerOnly(t *testing.T) {
	path := testPath(t)
	wantNoError(t, openTestFile(t, path, Limits{MaxBytes: testBytes}).Close())
	wantMode(t, path)
	wantNoError(t, os.Chmod(path, 0o644))
	wantNoError(t, openTestFile(t, path, Limits{MaxBytes: testBytes}).Close())
	wantMode(t, path)
}

func wantMode(t *testing.T, path string) {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fs.FileMode(0o600) {
		t.Errorf("the mode is %v", info.Mode())
	}
}

func TestFileRemembersAcrossRestartsWhatWasUsedLast(t *testing.T) {
	c, path := newClock(), testPath(t)
	limits := Limits{MaxBytes: 3 * (entryBytes + 10), TTL: testTTL, Now: c.Now}
	f := openTestFile(t, path, limits)
	for i := range 3 {
		c.advance(time.Second)
		mustAdd(t, f, key(i), "0123456789")
	}
	c.advance(time.Second)
	wantValue(t, f, key(0), "0123456789")
	wantNoError(t, f.Close())
	f = openTestFile(t, path, limits)
	mustAdd(t, f, key(3), "0123456789")
	wantMissing(t, f, key(1))
	wantValue(t, f, key(0), "0123456789")
}

func TestFileMakesRoomWhenItsLimitWasLowered(t *testing.T) {
	path := testPath(t)
	f := openTestFile(t, path, Limits{MaxBytes: testBytes})
	for i := range 20 {
		mustAdd(t, f, key(i), "0123456789")
	}
	wantNoError(t, f.Close())
	f = openTestFile(t, path, Limits{MaxBytes: 2 * (entryBytes + 10)})
	mustAdd(t, f, key(20), "0123456789")
	wantMissing(t, f, key(18))
	wantValue(t, f, key(19), "0123456789")
	wantValue(t, f, key(20), "0123456789")
}

func TestReadingExtendsTheTTLInTheFileWithFewWrites(t *testing.T) {
	c, path := newClock(), testPath(t)
	limits := Limits{MaxBytes: testBytes, TTL: testTTL, Now: c.Now}
	f := openTestFile(t, path, limits)
	for i := range 50 {
		mustAdd(t, f, key(i), "value")
	}
	before := lastWrite(t, f)
	read := func() {
		for i := range 1000 {
			wantValue(t, f, key(i%50), "value")
		}
	}
	c.advance(testTTL/refreshShare - 1)
	read()
	if f.timer != nil {
		t.Error("a write is planned before a tenth of the TTL has passed")
	}
	c.advance(1)
	read()
	eventually(t, "the uses were written", func() bool { return lastWrite(t, f) > before })
	read()
	if got := lastWrite(t, f) - before; got != 1 {
		t.Errorf("3000 reads of 50 entries took %d writes", got)
	}

	// The process is killed now, and what was read is there although it was added more than the TTL ago.
	killed := copyFile(t, path)
	c.advance(testTTL - 1)
	wantValue(t, openTestFile(t, killed, limits), key(1), "value")
	c.advance(1)
	wantMissing(t, openTestFile(t, copyFile(t, killed), limits), key(2))
}

// lastWrite returns the number of writes since the file was made.
func lastWrite(t *testing.T, f *File) (number int) {
	t.Helper()
	wantNoError(t, f.db.view(func(tx *bbolt.Tx) error {
		number = tx.ID()
		return nil
	}))
	return number
}

func TestFileDoesNotOutgrowItsLimit(t *testing.T) {
	const maxBytes = 1 << 20
	path := testPath(t)
	f := openTestFile(t, path, Limits{MaxBytes: maxBytes, TTL: testTTL})
	f.db.bolt.NoSync = true // ten times faster, and does not matter here
	random := rand.New(rand.NewPCG(1, 2))
	for i := range 4000 {
		mustAdd(t, f, key(i), strings.Repeat("v", random.IntN(1<<random.IntN(15))))
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d bytes for a limit of %d", info.Size(), maxBytes)
	if info.Size() > 3*maxBytes {
		t.Errorf("the file has %d bytes for a limit of %d", info.Size(), maxBytes)
	}
}

func TestFileInUseIsAnErrorWithinASecond(t *testing.T) {
	path := testPath(t)
	f := openTestFile(t, path, Limits{MaxBytes: testBytes})
	start := time.Now()
	_, err := OpenFile(path, Limits{MaxBytes: testBytes})
	if err == nil || !strings.Contains(err.Error(), "in use by another process") {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(start); took > time.Second {
		t.Errorf("it took %v", took)
	}
	mustAdd(t, f, key(1), "one")
}

func TestFileThatCannotBeMadeIsAnError(t *testing.T) {
	dir := t.TempDir()
	for _, path := range []string{dir, filepath.Join(dir, "missing", "store.db")} {
		if f, err := OpenFile(path, Limits{MaxBytes: testBytes}); err == nil {
			t.Errorf("%s was opened", path)
			_ = f.Close()
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("something was left behind: %v, %v", entries, err)
	}
}

func TestFileOpensWhenItsFileIsEmpty(t *testing.T) {
	path := testPath(t)
	wantNoError(t, os.WriteFile(path, nil, 0o600))
	f := openTestFile(t, path, Limits{MaxBytes: testBytes})
	wantNoError(t, f.Damage())
	mustAdd(t, f, key(1), "one")
}

func TestClosedFileAnswersWithErrors(t *testing.T) {
	f := openTestFile(t, testPath(t), Limits{MaxBytes: testBytes})
	mustAdd(t, f, key(1), "one")
	wantNoError(t, f.Close())
	wantNoError(t, f.Close())
	if _, _, err := f.Get(t.Context(), key(1)); err == nil {
		t.Error("Get gives no error")
	}
	if _, err := f.Add(t.Context(), key(2), nil); err == nil {
		t.Error("Add gives no error")
	}
	if err := f.Ping(t.Context()); err == nil {
		t.Error("Ping gives no error")
	}
}

func copyFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	target := testPath(t)
	wantNoError(t, os.WriteFile(target, content, 0o600))
	return target
}
