//go:build unix

package store

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestRedisEntriesExpireAndReadsExtendThem(t *testing.T) {
	const ttl = 400 * time.Millisecond
	r := connect(t, startRedis(t), ttl)
	mustAdd(t, r, key(1), "read")
	mustAdd(t, r, key(2), "left alone")
	for range 6 {
		time.Sleep(ttl / 4)
		wantValue(t, r, key(1), "read")
	}
	wantMissing(t, r, key(2))
	mustAdd(t, r, key(2), "again")
}

func TestRedisWithoutATTLKeepsEntries(t *testing.T) {
	r := connect(t, startRedis(t), 0)
	mustAdd(t, r, key(1), "one")
	wantValue(t, r, key(1), "one")
	if left, err := r.client.TTL(t.Context(), name(valuePrefix, key(1))).Result(); err != nil || left != -1 {
		t.Errorf("it expires in %v, %v", left, err)
	}
}

func TestRedisIsSharedByReplicas(t *testing.T) {
	server := startRedis(t)
	a, b := connect(t, server, testTTL), connect(t, server, testTTL)
	mustAdd(t, a, key(1), "a")
	if standing, err := b.Add(t.Context(), key(1), []byte("b")); err != nil || string(standing) != "a" {
		t.Errorf("Add = %q, %v", standing, err)
	}
	release := mustClaim(t, a, key(2), time.Minute)
	mustNotClaim(t, b, key(2))
	release()
	mustClaim(t, b, key(2), time.Minute)
	if names, err := a.client.Keys(t.Context(), "compactproxy:*").Result(); err != nil || len(names) != 2 {
		t.Errorf("the names are %v, %v", names, err)
	}
}

func TestReleaseWorksAfterTheClientHasGone(t *testing.T) {
	r := connect(t, startRedis(t), testTTL)
	ctx, cancel := context.WithCancel(t.Context())
	release, claimed, err := r.Claim(ctx, key(1), time.Minute)
	if err != nil || !claimed {
		t.Fatal(claimed, err)
	}
	cancel()
	release()
	mustClaim(t, r, key(1), time.Minute)
}

func TestRedisOperationsAreShortWhenItDoesNotAnswer(t *testing.T) {
	server := startRedis(t)
	r := connect(t, server, testTTL)
	mustAdd(t, r, key(1), "one")
	release := mustClaim(t, r, key(3), time.Minute)
	server.signal(syscall.SIGSTOP)

	wantFailures(t, r, 1, time.Second)
	wantFailures(t, r, 100, 100*time.Millisecond) // the pause: one request may ask for many keys
	within(t, time.Second, release)
	time.Sleep(pauseTime)
	within(t, 2*time.Second, func() { // one tries, the others do not wait
		concurrently(100, func(int) { wantFailures(t, r, 1, time.Second) })
	})

	server.signal(syscall.SIGCONT)
	eventually(t, "Redis is used again", func() bool {
		_, _, err := r.Get(t.Context(), key(1))
		return err == nil
	})
	wantValue(t, r, key(1), "one")
}

func TestRedisIsUsedAgainAfterARestart(t *testing.T) {
	server := startRedis(t)
	r := connect(t, server, testTTL)
	concurrently(20, func(i int) { mustAdd(t, r, key(i), "before") }) // so that there are connections to lose
	server.kill()
	wantFailures(t, r, 10, 100*time.Millisecond)
	server.start()
	eventually(t, "Redis is used again", func() bool { return r.Ping(t.Context()) == nil })
	for range 50 {
		mustAdd(t, r, key(1), "after")
	}
}

func TestRedisThatAcceptsAndSaysNothing(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	r := connectURL(t, "redis://"+listener.Addr().String(), testTTL)
	wantFailures(t, r, 1, 1100*time.Millisecond)
	wantFailures(t, r, 100, 100*time.Millisecond)
}

func TestACallerThatDoesNotWaitCausesNoPause(t *testing.T) {
	r := connect(t, startRedis(t), testTTL)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Get(ctx, key(1)); !errors.Is(err, context.Canceled) {
		t.Errorf("Get gives %v", err)
	}
	mustAdd(t, r, key(1), "one")
}

func TestAFullRedisStillAnswers(t *testing.T) {
	r := connect(t, startRedis(t), testTTL)
	mustAdd(t, r, key(1), "one")
	wantNoError(t, r.client.ConfigSet(t.Context(), "maxmemory", "1").Err())
	if _, err := r.Add(t.Context(), key(2), []byte("two")); err == nil || !strings.Contains(err.Error(), "OOM") {
		t.Errorf("Add gives %v", err)
	}
	wantValue(t, r, key(1), "one")
	if standing, err := r.Add(t.Context(), key(1), []byte("late")); err != nil || string(standing) != "one" {
		t.Errorf("Add = %q, %v, want what stands", standing, err)
	}
}

func TestErrorsHoldNoSecret(t *testing.T) {
	const secret = "s3cr3t"
	for _, url := range []string{
		"redis://user:" + secret + "@host:bad/0", "redis://:" + secret + "/x@host:6379", "redis://user:" + secret + "@host:6379/name",
		"http://user:" + secret + "@host:6379", "redis://host:6379?password=" + secret, secret, "redis://%zz:" + secret + "@host",
	} {
		r, err := NewRedis(url, testTTL)
		if err == nil {
			_ = r.Close()
			t.Errorf("%s is taken", url)
		} else if strings.Contains(err.Error(), secret) {
			t.Errorf("the error quotes the secret: %v", err)
		}
	}

	server := startRedis(t, "--requirepass", "another", "--rename-command", "SET", "")
	r := connectURL(t, "redis://:"+secret+"@"+server.address, testTTL)
	if err := r.Ping(t.Context()); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the error for a wrong password is %v", err)
	}
	r = connectURL(t, "redis://:another@"+server.address, testTTL)
	if _, err := r.Add(t.Context(), key(1), []byte(secret)); err == nil || strings.Contains(err.Error(), secret) {
		t.Errorf("the error for a command that is not there is %v", err)
	}
	server.kill()
	if err := r.Ping(t.Context()); err == nil || strings.Contains(err.Error(), "another") {
		t.Errorf("the error for a server that is not there is %v", err)
	}
}

func TestRedisTakesSettingsFromTheURL(t *testing.T) {
	r := connectURL(t, "rediss://127.0.0.1:1/3?pool_size=7&read_timeout=200ms", testTTL)
	options := r.client.Options()
	if options.TLSConfig == nil || options.DB != 3 || options.PoolSize != 7 || options.MaxActiveConns != 7 {
		t.Errorf("TLS %v, database %d, pool %d, connections %d", options.TLSConfig != nil, options.DB, options.PoolSize, options.MaxActiveConns)
	}
	if options.ReadTimeout != 200*time.Millisecond || options.WriteTimeout != ioTimeout {
		t.Errorf("timeouts %v, %v", options.ReadTimeout, options.WriteTimeout)
	}
}

// The library keeps the standard error of when the process started, so the test runs itself in another.
func TestRedisWritesNothingToStandardError(t *testing.T) {
	const variable = "COMPACTPROXY_TEST_REDIS_LOG"
	if os.Getenv(variable) != "" {
		if err := connectURL(t, "redis://127.0.0.1:1", testTTL).Ping(t.Context()); err == nil {
			t.Error("a server answers at port 1")
		}
		return
	}
	test := exec.Command(os.Args[0], "-test.run=^TestRedisWritesNothingToStandardError$")
	test.Env = append(os.Environ(), variable+"=1")
	var written bytes.Buffer
	test.Stderr = &written
	if err := test.Run(); err != nil || written.Len() > 0 {
		t.Errorf("%v, and it wrote %s", err, written.String())
	}
}

// wantFailures fails unless so many reads fail, all together within a time.
func wantFailures(t *testing.T, r *Redis, reads int, limit time.Duration) {
	t.Helper()
	within(t, limit+200*time.Millisecond, func() { // the machine may be busy
		for i := range reads {
			if _, _, err := r.Get(t.Context(), key(i)); err == nil {
				t.Errorf("Get gives no error")
			}
		}
	})
}

func within(t *testing.T, limit time.Duration, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took > limit {
		t.Errorf("it took %v, more than %v", took, limit)
	}
}
