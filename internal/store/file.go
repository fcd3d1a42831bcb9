package store

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"
)

// refreshDelay is how long uses are gathered before they are written together.
const refreshDelay = time.Second

// File is a store in one file, which one process has open at a time. Every value is synced to the disk before Add returns.
//
// The limits hold for the values. The file takes up more, since it is made of pages, and does not shrink.
type File struct {
	limits  Limits
	damage  error
	db      *database
	claims  *claims
	writing sync.Mutex // held while the file is written, before mu

	mu     sync.Mutex
	index  *lru[time.Time] // when each use was last written
	timer  *time.Timer     // set while uses wait to be written
	closed bool
}

// OpenFile opens the file at path, or makes it with mode 0600. Its directory must exist. It reads the whole file.
//
// A damaged file is renamed to path with ".damaged" behind, where it takes the place of an earlier one, and an empty file
// takes its place: see [File.Damage]. What fails otherwise is an error, also that another process has the file open, which
// takes less than a second.
func OpenFile(path string, limits Limits) (*File, error) {
	f, damage := openFile(path, limits)
	if !errors.Is(damage, errDamaged) {
		return f, damage
	}
	aside := path + ".damaged"
	if err := os.Rename(path, aside); err != nil {
		return nil, fmt.Errorf("moving a damaged store away: %w", err)
	}
	f, err := openFile(path, limits)
	if err != nil {
		return nil, err
	}
	f.damage = fmt.Errorf("a damaged store was moved to %s: %w", aside, damage)
	return f, nil
}

// Damage returns why the file was replaced when it was opened, and where it is now. Nil means that it was not.
func (f *File) Damage() error { return f.damage }

// Get returns the value that stands under key, and extends its TTL. That is written to the file a little later, and not on
// every read: what was read within a tenth of the TTL before the process is killed may expire as much earlier.
func (f *File) Get(_ context.Context, key Key) (value []byte, found bool, err error) {
	if !f.use(key) {
		return nil, false, nil
	}
	value, found, err = f.db.value(key)
	if err != nil {
		return nil, false, fmt.Errorf("reading the store file: %w", err)
	}
	return value, found, nil
}

// Add stores value under key unless a value stands there, and returns what stands afterwards. An error, of a full disk
// for example, means that nothing has changed.
func (f *File) Add(ctx context.Context, key Key, value []byte) (standing []byte, err error) {
	if err := f.limits.check(value); err != nil {
		return nil, err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	if standing, found, err := f.Get(ctx, key); found || err != nil {
		return standing, err
	}
	if err := f.put(key, value); err != nil {
		return nil, err
	}
	return bytes.Clone(value), nil
}

// Replace stores value under key, whatever stands there. An error means that nothing has changed.
func (f *File) Replace(_ context.Context, key Key, value []byte) error {
	if err := f.limits.check(value); err != nil {
		return err
	}
	f.writing.Lock()
	defer f.writing.Unlock()
	return f.put(key, value)
}

// put writes a value and makes room for it. The lock for writing must be held.
func (f *File) put(key Key, value []byte) error {
	now, removed := f.limits.Now(), f.overdue(len(value))
	if err := f.db.put(key, value, now, removed); err != nil {
		return fmt.Errorf("writing the store file: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.index.remove(removed...)
	f.index.put(key, len(value), now, now)
	return nil
}

// Claim is like [Memory.Claim]: no other process has the file open.
func (f *File) Claim(_ context.Context, key Key, lasting time.Duration) (release func(), claimed bool, err error) {
	release, claimed = f.claims.claim(key, lasting)
	return release, claimed, nil
}

// Ping returns an error when the file is closed or was found damaged.
func (f *File) Ping(context.Context) error { return f.db.ping() }

// Close writes what is left to write and closes the file.
func (f *File) Close() error {
	f.mu.Lock()
	if f.closed {
		f.mu.Unlock()
		return nil
	}
	f.closed = true
	f.mu.Unlock()
	return errors.Join(f.writeUses(), f.db.close())
}

// openFile opens a file, and checks and indexes all of it.
func openFile(path string, limits Limits) (*File, error) {
	db, err := openDatabase(path)
	if err != nil {
		return nil, fmt.Errorf("opening the store file: %w", err)
	}
	limits = limits.withDefaults()
	f := &File{limits: limits, db: db, claims: newClaims(limits.Now), index: newLRU[time.Time](limits)}
	// The mode that bbolt is given is for a new file only.
	if err := errors.Join(os.Chmod(path, 0o600), f.readIndex()); err != nil {
		return nil, errors.Join(fmt.Errorf("opening the store file: %w", err), db.close())
	}
	return f, nil
}

func (f *File) readIndex() error {
	type use struct {
		key        Key
		valueBytes int
		used       time.Time
	}
	var uses []use
	err := f.db.scan(func(key Key, valueBytes int, used time.Time) {
		uses = append(uses, use{key, valueBytes, used})
	})
	slices.SortFunc(uses, func(a, b use) int { return a.used.Compare(b.used) })
	now := f.limits.Now()
	for _, u := range uses {
		if u.used.After(now) { // the clock was set back: without this the entry would outlive its TTL
			u.used = now
		}
		f.index.put(u.key, u.valueBytes, u.used, u.used)
	}
	return err
}

// use reports whether there is an entry under key, and sees to it that its use is written if that is due.
func (f *File) use(key Key) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	e, ok := f.index.get(key)
	if ok && f.limits.refreshDue(e.held, e.used) && f.timer == nil && !f.closed {
		// What fails stays unwritten, and is due again at the next read.
		f.timer = time.AfterFunc(refreshDelay, func() { _ = f.writeUses() })
	}
	return ok
}

func (f *File) overdue(valueBytes int) []Key {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index.overdue(valueBytes)
}

// writeUses writes all uses that are not written yet, those that are not due too: it is one write for all.
func (f *File) writeUses() error {
	f.writing.Lock()
	defer f.writing.Unlock()
	uses := f.takeUses()
	if len(uses) == 0 {
		return nil
	}
	if err := f.db.use(uses); err != nil {
		return fmt.Errorf("writing the store file: %w", err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	for key, used := range uses {
		if element, ok := f.index.byKey[key]; ok {
			element.Value.(*entry[time.Time]).held = used
		}
	}
	return nil
}

func (f *File) takeUses() map[Key]time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.timer != nil {
		f.timer.Stop()
		f.timer = nil
	}
	uses := make(map[Key]time.Time)
	for key, element := range f.index.byKey {
		if e := element.Value.(*entry[time.Time]); e.used.After(e.held) {
			uses[key] = e.used
		}
	}
	return uses
}
