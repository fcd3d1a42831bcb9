package acceptance

import (
	"bytes"
	"net/http"
	"testing"
)

// TestTenants plays a conversation for two clients. Whether the second one gets the summaries of the first is for the
// configuration to say.
func TestTenants(t *testing.T) {
	t.Parallel()
	client := func(key, team string) http.Header {
		header := http.Header{"Authorization": {"Bearer " + key}}
		if team != "" {
			header.Set("X-Team", team)
		}
		return header
	}
	for _, tc := range []struct {
		name, tenant string
		one, two     http.Header
		share        bool
	}{
		{"two credentials", "credential", client("sk-1", "blue"), client("sk-2", "blue"), false},
		{"one credential", "credential", client("sk-1", "blue"), client("sk-1", "red"), true},
		{"two teams with one credential", "header:X-Team", client("sk-1", "blue"), client("sk-1", "red"), false},
		{"one team with two credentials", "header:X-Team", client("sk-1", "blue"), client("sk-2", "blue"), true},
		{"two credentials that name no team", "header:X-Team", client("sk-1", ""), client("sk-2", ""), false},
		{"a team that is named as a credential", "header:X-Team", client("sk-1", "Bearer sk-2"), client("sk-2", ""), false},
		{"everybody", "shared", client("sk-1", "blue"), client("sk-2", "red"), true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := startSummarizer(t)
			proxy := start(t, summaryConfig(s, tiers()).with("store", settings{"tenant": tc.tenant}))
			eachAPI(t, func(t *testing.T, api api) {
				c, before := proxy.to(api.path()), s.count()
				one, two := session{client: c, header: tc.one}, session{client: c, header: tc.two}
				requests := growing(api, 24)[30:]
				for _, raw := range requests {
					one.next(t, raw)
				}
				first := s.count()
				for _, raw := range requests {
					two.next(t, raw)
				}
				checkShared(t, tc.share, first-before, s.count()-first)
				last := len(requests) - 1
				if same := bytes.Equal(one.forwarded[last].raw, two.forwarded[last].raw); same != tc.share {
					t.Errorf("they forward the same bytes: %v", same)
				}
			})
		})
	}
}

// checkShared: who gets the summaries of another client has none written.
func checkShared(t *testing.T, share bool, first, second int) {
	t.Helper()
	want := first
	if share {
		want = 0
	}
	if first == 0 || second != want {
		t.Errorf("%d calls for one client, then %d for the other, want %d", first, second, want)
	}
}
