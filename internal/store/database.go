package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"runtime/debug"
	"sync/atomic"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"
)

const (
	valuesBucket = "values" // key -> checksum, value
	usesBucket   = "uses"   // key -> time of the last use, apart from the values since it is written far more often

	checksumBytes = 4
	lockTimeout   = 500 * time.Millisecond
)

// errDamaged marks a file that is not what this package wrote.
var errDamaged = errors.New("the file is damaged")

// database is the file of a [File]: values and when they were last used.
type database struct {
	bolt *bbolt.DB
	// broken is set when bbolt panicked. It may hold its locks then, so it is never called again.
	broken atomic.Bool
}

// openDatabase opens the file, or makes it, within a second.
func openDatabase(path string) (*database, error) {
	d := &database{}
	err := d.guard(func() (err error) {
		d.bolt, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: lockTimeout, FreelistType: bbolt.FreelistMapType})
		return err
	})
	var system syscall.Errno
	switch {
	case err == nil:
		return d, nil
	case errors.Is(err, bolterrors.ErrTimeout):
		return nil, fmt.Errorf("%s is in use by another process", path)
	case errors.As(err, &system), errors.Is(err, errDamaged):
		return nil, err
	default: // bbolt does not like what it reads, and has no name for all such errors
		return nil, fmt.Errorf("%w: %w", errDamaged, err)
	}
}

// scan reads everything there is, and returns an error if anything of it is damaged.
func (d *database) scan(visit func(key Key, valueBytes int, used time.Time)) error {
	return d.view(func(tx *bbolt.Tx) error {
		values, uses := tx.Bucket([]byte(valuesBucket)), tx.Bucket([]byte(usesBucket))
		if values == nil && uses == nil { // a new file
			return nil
		}
		if values == nil || uses == nil {
			return fmt.Errorf("%w: half of it is missing", errDamaged)
		}
		err := values.ForEach(func(k, record []byte) error {
			if len(k) != len(Key{}) {
				return fmt.Errorf("%w: a key has %d bytes", errDamaged, len(k))
			}
			value, err := checked(k, record)
			if err != nil {
				return err
			}
			used := uses.Get(k)
			if len(used) != 8 {
				return fmt.Errorf("%w: the time of a use has %d bytes", errDamaged, len(used))
			}
			visit(Key(k), len(value), time.Unix(0, int64(binary.BigEndian.Uint64(used))))
			return nil
		})
		if err != nil {
			return err
		}
		return checkPages(tx)
	})
}

// value returns a copy of the value under key.
func (d *database) value(key Key) (value []byte, found bool, err error) {
	err = d.view(func(tx *bbolt.Tx) error {
		values := tx.Bucket([]byte(valuesBucket))
		if values == nil {
			return nil
		}
		record := values.Get(key[:])
		if record == nil {
			return nil
		}
		v, err := checked(key[:], record)
		if err != nil {
			return err
		}
		value, found = bytes.Clone(v), true
		return nil
	})
	return value, found, err
}

// put removes some entries and adds one, or changes nothing if that fails.
func (d *database) put(key Key, value []byte, used time.Time, removed []Key) error {
	return d.update(func(values, uses *bbolt.Bucket) error {
		for _, key := range removed {
			if err := errors.Join(values.Delete(key[:]), uses.Delete(key[:])); err != nil {
				return err
			}
		}
		record := binary.BigEndian.AppendUint32(make([]byte, 0, checksumBytes+len(value)), checksum(key[:], value))
		return errors.Join(values.Put(key[:], append(record, value...)), putUse(uses, key, used))
	})
}

// use writes when entries were last used. One that has gone in the meantime stays gone.
func (d *database) use(times map[Key]time.Time) error {
	return d.update(func(values, uses *bbolt.Bucket) error {
		for key, used := range times {
			if values.Get(key[:]) == nil {
				continue
			}
			if err := putUse(uses, key, used); err != nil {
				return err
			}
		}
		return nil
	})
}

func (d *database) ping() error {
	return d.view(func(*bbolt.Tx) error { return nil })
}

func (d *database) close() error {
	if d.broken.Load() {
		return nil
	}
	return d.bolt.Close()
}

func (d *database) view(f func(*bbolt.Tx) error) error {
	return d.guard(func() error { return d.bolt.View(f) })
}

func (d *database) update(f func(values, uses *bbolt.Bucket) error) error {
	return d.guard(func() error {
		return d.bolt.Update(func(tx *bbolt.Tx) error {
			values, err := tx.CreateBucketIfNotExists([]byte(valuesBucket))
			if err != nil {
				return err
			}
			uses, err := tx.CreateBucketIfNotExists([]byte(usesBucket))
			if err != nil {
				return err
			}
			return f(values, uses)
		})
	})
}

// guard calls f and returns as an error what bbolt does with a damaged file: it panics, or reads mapped memory behind the
// end of the file, which would end the process.
func (d *database) guard(f func() error) (err error) {
	if d.broken.Load() {
		return errDamaged
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			d.broken.Store(true)
			err = fmt.Errorf("%w: %v", errDamaged, r)
		}
	}()
	return f()
}

// checkPages finds what reading all values does not: a wrong list of free pages, with which later writes fail or destroy
// values. It works in another goroutine, where no fault is guarded, so it is for a file that was read through.
func checkPages(tx *bbolt.Tx) (err error) {
	for problem := range tx.Check() { // to the end, which the goroutine waits for
		err = fmt.Errorf("%w: %w", errDamaged, problem)
	}
	return err
}

func putUse(uses *bbolt.Bucket, key Key, used time.Time) error {
	return uses.Put(key[:], binary.BigEndian.AppendUint64(nil, uint64(used.UnixNano())))
}

// checked returns the value of a record.
func checked(key, record []byte) ([]byte, error) {
	if len(record) < checksumBytes {
		return nil, fmt.Errorf("%w: a record has %d bytes", errDamaged, len(record))
	}
	value := record[checksumBytes:]
	if binary.BigEndian.Uint32(record) != checksum(key, value) {
		return nil, fmt.Errorf("%w: a checksum is wrong", errDamaged)
	}
	return value, nil
}

func checksum(key, value []byte) uint32 {
	table := crc32.MakeTable(crc32.Castagnoli)
	return crc32.Update(crc32.Checksum(key, table), table, value)
}
