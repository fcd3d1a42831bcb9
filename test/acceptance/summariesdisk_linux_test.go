package acceptance

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// smallDisk mounts a file system of so many bytes, which ends with the test. Who may not mount skips the test.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size="+size); err != nil {
		t.Skipf("mounting a small disk: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestFullDisk fills the disk in the middle of a session and makes room again. The memory stands in meanwhile, and in the end
// the file holds everything.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	dir := smallDisk(t, "256k")
	filler := filepath.Join(dir, "filler")
	u, s := startUpstream(t), startSummarizer(t)
	config := summaryConfig(s, tiers()).with("store", settings{"type": "file", "path": filepath.Join(dir, "summaries.db")})
	requests := growing(chat, 150)
	var played session
	t.Run("a full disk", func(t *testing.T) {
		played.client = startAt(t, u, config)
		playPaid(t, &played, s, requests[:100])
		// What is left of the last page is taken, too: the write ends with an error.
		if err := os.WriteFile(filler, make([]byte, 256<<10), 0o600); err == nil {
			t.Fatal("the disk is not full")
		}
		playPaid(t, &played, s, requests[100:200])
		if failed := played.proxy.metric(t, storeSeries("add", "error")); failed < 1 {
			t.Error("the metrics do not say that the store failed")
		}
		if err := os.Remove(filler); err != nil {
			t.Fatal(err)
		}
		playPaid(t, &played, s, requests[200:])
	})
	t.Run("after a restart", func(t *testing.T) {
		before := s.count()
		played.client = startAt(t, u, config)
		played.again(t, requests, 20)
		if calls := s.count() - before; calls > 0 {
			t.Errorf("%d calls", calls)
		}
	})
}
