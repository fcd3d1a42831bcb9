package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"compactproxy": main})
}

// TestScripts runs the program as a user does. See testdata/script.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		UpdateScripts:       os.Getenv("UPDATE_SCRIPTS") != "",
		Setup:               setupScript,
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exits":         exits,
			"waitready":     waitReady,
			"post":          post,
			"terminate":     terminate,
			"waitlistening": waitListening,
		},
	})
}

// setupScript starts an upstream that sends back what it gets, and finds two free addresses.
func setupScript(env *testscript.Env) error {
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // to its end: once the answer begins, the rest cannot be read
		w.Header().Set("X-Authorization", r.Header.Get("Authorization"))
		w.Header().Set("X-Path", r.URL.Path)
		_, _ = w.Write(body)
	}))
	env.Defer(upstream.Close)
	env.Setenv("UPSTREAM", upstream.URL)
	for _, name := range []string{"LISTEN", "ADMIN"} {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		env.Setenv(name, listener.Addr().String())
		env.Defer(func() { _ = listener.Close() })
		if err := listener.Close(); err != nil {
			return err
		}
	}
	return nil
}

// exits CODE ARGS... runs compactproxy and demands the exit code.
func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 1 {
		ts.Fatalf("usage: exits CODE ARGS...")
	}
	err := ts.Exec("compactproxy", args[1:]...)
	got := "exit status 0"
	if err != nil {
		got = err.Error()
	}
	if got != "exit status "+args[0] {
		ts.Fatalf("%s, want %s", got, args[0])
	}
}

// waitready ADDRESS waits until the admin listener there says that the proxy is ready.
func waitReady(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if checkReady(context.Background(), "http://"+args[0]+"/readyz") == nil {
			return
		}
	}
	ts.Fatalf("%s did not become ready", args[0])
}

// waitlistening ADDRESS waits until something listens there.
func waitListening(ts *testscript.TestScript, _ bool, args []string) {
	for deadline := time.Now().Add(20 * time.Second); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if connection, err := net.Dial("tcp", args[0]); err == nil {
			_ = connection.Close()
			return
		}
	}
	ts.Fatalf("nothing listens on %s", args[0])
}

// post URL FILE posts a file and prints the response: the headers, sorted, an empty line and the body.
func post(ts *testscript.TestScript, _ bool, args []string) {
	file, err := os.Open(ts.MkAbs(args[1]))
	ts.Check(err)
	defer func() { _ = file.Close() }()
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, args[0], file)
	ts.Check(err)
	request.Header.Set("Authorization", "Bearer client")
	response, err := http.DefaultClient.Do(request)
	ts.Check(err)
	defer func() { _ = response.Body.Close() }()
	_, err = fmt.Fprintln(ts.Stdout(), response.Status)
	ts.Check(err)
	ts.Check(response.Header.Write(ts.Stdout()))
	_, err = fmt.Fprintln(ts.Stdout())
	ts.Check(err)
	_, err = io.Copy(ts.Stdout(), response.Body)
	ts.Check(err)
}

// terminate sends SIGTERM to what runs in the background.
func terminate(ts *testscript.TestScript, _ bool, _ []string) {
	for _, cmd := range ts.BackgroundCmds() {
		ts.Check(cmd.Process.Signal(syscall.SIGTERM))
	}
}

func TestGetenvTakesWholeNames(t *testing.T) {
	env := environment{environ: []string{"AB=1", "A=x=y", "EMPTY="}}
	for name, want := range map[string]string{"A": "x=y", "AB": "1", "EMPTY": "", "B": ""} {
		if got := env.getenv(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestHelpNeedsNoConfiguration(t *testing.T) {
	for _, args := range [][]string{{"help"}, {"-h"}, {"--help"}, {"serve", "-h"}, {"check", "--help"}} {
		var stdout, stderr strings.Builder
		code := run(t.Context(), environment{
			args:    args,
			environ: []string{"COMPACTPROXY_CONFIG=/does/not/exist"},
			stdout:  &stdout,
			stderr:  &stderr,
		})
		if code != exitOK || stderr.String() != "" || !strings.HasPrefix(stdout.String(), "compactproxy makes") &&
			!strings.HasPrefix(stdout.String(), "Usage: compactproxy "+args[0]) {
			t.Errorf("%v: exit code %d, stdout %q, stderr %q", args, code, stdout.String(), stderr.String())
		}
	}
}
