package proxy

import (
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCredentialAtTheUpstream(t *testing.T) {
	for _, test := range []struct {
		name         string
		key          string
		header, want http.Header
	}{
		{"the client's own", "", http.Header{"Authorization": {"Bearer mine"}}, http.Header{"Authorization": {"Bearer mine"}}},
		{"nobody's", "", http.Header{}, http.Header{}},
		{"ours for the client's", "ours", http.Header{"Authorization": {"Bearer mine"}}, http.Header{"Authorization": {"Bearer ours"}}},
		{"ours for none", "ours", http.Header{}, http.Header{"Authorization": {"Bearer ours"}}},
		{"ours in the place of Azure's", "ours", http.Header{"Api-Key": {"mine"}}, http.Header{"Api-Key": {"ours"}}},
		{
			"ours in both places", "ours",
			http.Header{"Api-Key": {"mine"}, "Authorization": {"Basic mine"}},
			http.Header{"Api-Key": {"ours"}, "Authorization": {"Bearer ours"}},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			upstream := &recorder{}
			f := newFixture(t, upstream, func(o *Options) { o.APIKey = test.key })
			post(t, f, shortRequest, test.header.Clone())
			got := http.Header{}
			for _, name := range []string{"Authorization", "Api-Key"} {
				if values, ok := upstream.only(t).header[name]; ok {
					got[name] = values
				}
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("credentials (-want +got):\n%s", diff)
			}
		})
	}
}

func TestClientKeys(t *testing.T) {
	for _, test := range []struct {
		name   string
		header http.Header
		status int
	}{
		{"the first key", http.Header{"Authorization": {"Bearer one"}}, 200},
		{"a scheme in small letters", http.Header{"Authorization": {"bearer one"}}, 200},
		{"the second key", http.Header{"Authorization": {"Bearer two"}}, 200},
		{"a key in Azure's header", http.Header{"Api-Key": {"two"}}, 200},
		{"no key", http.Header{}, 401},
		{"an empty key", http.Header{"Authorization": {"Bearer "}}, 401},
		{"another key", http.Header{"Authorization": {"Bearer three"}}, 401},
		{"the upstream's key", http.Header{"Authorization": {"Bearer ours"}}, 401},
		{"a key without its scheme", http.Header{"Authorization": {"one"}}, 401},
	} {
		for _, path := range []string{"/v1/chat/completions", "/v1/models"} {
			t.Run(test.name+path, func(t *testing.T) {
				upstream := &recorder{}
				f := newFixture(t, upstream, func(o *Options) { o.APIKey, o.ClientKeys = "ours", []ClientKey{{"client", "one"}, {"other", "two"}} })
				res, body := do(t, http.MethodPost, f.url+path, nil, test.header.Clone())
				if res.StatusCode != test.status {
					t.Fatalf("status %d", res.StatusCode)
				}
				client, _ := f.accessLine(t, 0)["client"].(string)
				if want := map[int]string{200: "client", 401: ""}[test.status]; client != want && client != "other" {
					t.Errorf("the log names %q", client)
				}
				if test.status == 401 {
					if got := decodeError(t, body); got.Code != "invalid_api_key" || len(upstream.requests) != 0 {
						t.Errorf("%s, %d requests upstream", body, len(upstream.requests))
					}
				}
			})
		}
	}
}
