package store

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
)

const (
	valuePrefix = "compactproxy:"
	claimPrefix = "compactproxy:claim:"

	// operationTimeout bounds everything that one operation does, waiting for a connection and dialing included.
	operationTimeout = time.Second
	dialTimeout      = time.Second
	ioTimeout        = 500 * time.Millisecond
	poolSize         = 32
	idleTimeout      = 5 * time.Minute
)

// Redis is a store that replicas share: a server from Redis 6.2 on, or one that speaks its protocol. What bounds it is the
// server's own configuration.
//
// An operation takes a second at most. After one that the server did not answer, others fail at once for a second.
type Redis struct {
	client  *redis.Client
	ttl     time.Duration
	release *redis.Script
	pause   pause
}

// NewRedis returns the store at a URL of the form redis://user:password@host:port/database, or rediss:// for TLS. The query
// may hold settings of go-redis such as pool_size=64. A ttl of 0 means that entries do not expire. The server is not asked:
// see [Redis.Ping].
func NewRedis(url string, ttl time.Duration) (*Redis, error) {
	options, err := redis.ParseURL(url)
	if err != nil { // which may quote the password
		return nil, errors.New("the store's URL is not of the form redis://user:password@host:port/database")
	}
	bound(options)
	// The library writes lines of its own to standard error, for the whole process. Every failure is returned as well.
	logging.Disable()
	return &Redis{client: redis.NewClient(options), ttl: max(ttl, 0), release: redis.NewScript(
		// A claim may have ended and belong to somebody else by now.
		`if redis.call("GET", KEYS[1]) == ARGV[1] then return redis.call("DEL", KEYS[1]) end return 0`,
	)}, nil
}

// Get returns the value that stands under key, and extends its TTL.
func (r *Redis) Get(ctx context.Context, key Key) (value []byte, found bool, err error) {
	err = r.do(ctx, "getting a value", func(ctx context.Context) error {
		got, err := r.client.GetEx(ctx, name(valuePrefix, key), r.ttl).Bytes()
		if err == nil {
			value, found = got, true
		}
		return ignoreNil(err)
	})
	return value, found, err
}

// Add stores value under key unless a value stands there, and returns what stands afterwards. It takes one round trip.
func (r *Redis) Add(ctx context.Context, key Key, value []byte) (standing []byte, err error) {
	if err := checkSize(value); err != nil {
		return nil, err
	}
	err = r.do(ctx, "adding a value", func(ctx context.Context) (err error) {
		standing, err = r.setAndGet(ctx, name(valuePrefix, key), value)
		return err
	})
	return standing, err
}

// Replace stores value under key, whatever stands there.
func (r *Redis) Replace(ctx context.Context, key Key, value []byte) error {
	if err := checkSize(value); err != nil {
		return err
	}
	return r.do(ctx, "replacing a value", func(ctx context.Context) error {
		return r.client.Set(ctx, name(valuePrefix, key), value, r.ttl).Err()
	})
}

// Claim lets one caller at a time, in all replicas, work on key. It is used like [Memory.Claim]. Its release takes a second
// at most; a claim that cannot be released ends after lasting.
func (r *Redis) Claim(ctx context.Context, key Key, lasting time.Duration) (release func(), claimed bool, err error) {
	claim, token := name(claimPrefix, key), rand.Text()
	err = r.do(ctx, "claiming a key", func(ctx context.Context) error {
		err := r.client.SetArgs(ctx, claim, token, redis.SetArgs{Mode: "NX", TTL: max(lasting, minClaim)}).Err()
		claimed = err == nil
		return ignoreNil(err)
	})
	if !claimed {
		return func() {}, false, err
	}
	return sync.OnceFunc(func() {
		// The claim ends also when the client has gone.
		_ = r.do(context.WithoutCancel(ctx), "releasing a key", func(ctx context.Context) error {
			return r.release.Run(ctx, r.client, []string{claim}, token).Err()
		})
	}), true, nil
}

// Ping returns an error unless the server answers.
func (r *Redis) Ping(ctx context.Context) error {
	return r.do(ctx, "pinging", func(ctx context.Context) error { return r.client.Ping(ctx).Err() })
}

// Close closes the connections.
func (r *Redis) Close() error { return r.client.Close() }

// bound sets what the URL leaves open, and what keeps the promise on time.
func bound(options *redis.Options) {
	options.DialTimeout = cmp.Or(options.DialTimeout, dialTimeout)
	options.ReadTimeout = cmp.Or(options.ReadTimeout, ioTimeout)
	options.WriteTimeout = cmp.Or(options.WriteTimeout, ioTimeout)
	options.PoolTimeout = cmp.Or(options.PoolTimeout, ioTimeout)
	options.PoolSize = cmp.Or(options.PoolSize, poolSize)
	options.MaxActiveConns = cmp.Or(options.MaxActiveConns, options.PoolSize)
	options.ConnMaxIdleTime = cmp.Or(options.ConnMaxIdleTime, idleTimeout)
	options.PipelinePoolSize = cmp.Or(options.PipelinePoolSize, -1) // none: two commands need no buffers of their own
	options.ContextTimeoutEnabled = true
	options.DialerRetries = 1
	options.MaxRetries = -1 // none
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

// setAndGet sets a value unless there is one, and returns what is there then.
func (r *Redis) setAndGet(ctx context.Context, name string, value []byte) ([]byte, error) {
	var set *redis.StatusCmd
	var get *redis.StringCmd
	_, err := r.client.Pipelined(ctx, func(p redis.Pipeliner) error {
		set = p.SetArgs(ctx, name, value, redis.SetArgs{Mode: "NX", TTL: r.ttl})
		get = p.GetEx(ctx, name, r.ttl)
		return nil
	})
	// The error of the pipeline is that of a command, if both were answered. That one could not be set, for lack of memory
	// for example, does not matter when a value stands.
	if err != nil && !isReply(err) {
		return nil, err
	}
	standing, err := get.Bytes()
	if !errors.Is(err, redis.Nil) {
		return standing, err
	}
	if err := ignoreNil(set.Err()); err != nil {
		return nil, err
	}
	return bytes.Clone(value), nil // it was removed at once
}

// do runs one operation within its time, unless there is a pause.
func (r *Redis) do(ctx context.Context, doing string, operation func(context.Context) error) error {
	if !r.pause.admit() {
		return fmt.Errorf("%s in Redis: not tried, since it did not answer less than %v ago", doing, pauseTime)
	}
	bounded, cancel := context.WithTimeout(ctx, operationTimeout)
	defer cancel()
	err := operation(bounded)
	switch {
	case err == nil, isReply(err):
		r.pause.report(true)
	case ctx.Err() == nil: // else the caller did not wait for the answer, which tells nothing
		r.pause.report(false)
	}
	if err != nil {
		return fmt.Errorf("%s in Redis: %w", doing, withoutArguments(err))
	}
	return nil
}

// withoutArguments removes what Redis quotes of a command that it does not know, or that the operator renamed: the value is
// among it.
func withoutArguments(err error) error {
	if text, _, quotes := strings.Cut(err.Error(), ", with args"); quotes {
		return errors.New(text)
	}
	return err
}

// isReply reports whether an error is what the server answered.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}

func ignoreNil(err error) error {
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return err
}

func name(prefix string, key Key) string { return prefix + hex.EncodeToString(key[:]) }
