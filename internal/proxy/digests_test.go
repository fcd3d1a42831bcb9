package proxy

import "testing"

func TestRecentDigests(t *testing.T) {
	r := newRecentDigests()
	body := []byte("body")
	if !r.add("plan", body) || r.add("plan", body) {
		t.Error("a request must be new once")
	}
	if !r.add("other", body) {
		t.Error("another plan makes another request")
	}
	for i := range recentRequests - 2 {
		r.add("plan", []byte(itoa(i)))
	}
	if r.add("plan", body) {
		t.Error("the request was forgotten too early")
	}
	r.add("plan", []byte("one more"))
	if !r.add("plan", body) {
		t.Error("the oldest request was not forgotten")
	}
	if len(r.known) != recentRequests {
		t.Errorf("%d digests are kept, want %d", len(r.known), recentRequests)
	}
}
