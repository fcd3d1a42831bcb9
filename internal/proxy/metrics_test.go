package proxy

import (
	"bytes"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// exposed lists name, type, labels and help of every series of the program.
func exposed(t *testing.T, reg *prometheus.Registry) string {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	for _, family := range families {
		var labels []string
		for _, l := range family.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		fmt.Fprintf(&b, "%s{%s} %s\n\t%s\n", family.GetName(), strings.Join(labels, ","),
			strings.ToLower(family.GetType().String()), family.GetHelp())
	}
	return b.String()
}

func TestMetricNames(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	post(t, f, toolLoop("model", 40, 400), nil)
	f.accessLine(t, 0)
	golden := filepath.Join("testdata", "metrics.golden")
	got := exposed(t, f.metrics)
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("exposition (-want +got):\n%s", diff)
	}
}

func TestMetricsPassTheLinter(t *testing.T) {
	reg := NewRegistry()
	m := NewMetrics(reg, Known{Models: []string{"a"}, Compactors: []string{"c"}, Plans: []PlanInfo{{"a", "f", 1000, "s"}}})
	m.requests.WithLabelValues("chat", "a", "passed", "200").Inc()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := slices.DeleteFunc(families, func(f *dto.MetricFamily) bool { return !strings.HasPrefix(f.GetName(), "compactproxy_") })
	problems, err := promlint.NewWithMetricFamilies(own).Lint()
	if err != nil || len(own) == 0 {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	if len(own) == len(families) {
		t.Error("the runtime's series are missing")
	}
}

func TestSeriesStartAtZero(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	for _, series := range [][]string{
		{"tokens_saved_total", "api=chat", "model=rule"},
		{"tokens_would_save_total", "api=chat", "model=rule"},
		{"passed_total", "reason=below_trigger"},
		{"passed_total", "reason=internal_error"},
		{"compactions_total", "api=chat", "compactor=sliding_window", "model=rule", "outcome=not_smaller"},
		{"steps_discarded_total", "compactor=sliding_window", "reason=split_group"},
		{"compaction_step_tokens_total", "compactor=tool_result_pruning"},
		{"cuts_total", "model=rule"},
		{"target_missed_total", "model=rule"},
		{"pinned_expired_total"},
		{"in_flight_requests"},
		{"overhead_seconds", "api=chat"},
	} {
		if got := f.metric(t, series[0], series[1:]...); got != 0 {
			t.Errorf("%v is %v, want 0", series, got)
		}
	}
	if got := f.metric(t, "plan_info", "fingerprint=f00d", "model=rule"); got != 1 {
		t.Errorf("plan_info is %v", got)
	}
	if got := f.metric(t, "build_info", "revision=abc", "version=1.2.3"); got != 1 {
		t.Errorf("build_info is %v", got)
	}
}

// Savings belong to accepted requests; events of the chain happen once, however often a client asks.
func TestRetriesDoNotCountTwice(t *testing.T) {
	var status atomic.Int32
	f := newFixture(t, &recorder{answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(int(status.Load())) }}, nil)
	body := toolLoop("model", newlyCut, 400)
	var res *http.Response
	for i, code := range []int32{500, 503, 200} {
		status.Store(code)
		res, _ = post(t, f, body, nil)
		f.accessLine(t, i)
	}
	var before, after float64
	_, _ = fmt.Sscan(res.Header.Get(headerTokensBefore), &before)
	_, _ = fmt.Sscan(res.Header.Get(headerTokensAfter), &after)
	for _, test := range []struct {
		want   float64
		name   string
		labels []string
	}{
		{1, "requests_total", []string{"action=compacted", "api=chat", "code=500", "model=rule"}},
		{1, "requests_total", []string{"action=compacted", "api=chat", "code=503", "model=rule"}},
		{1, "requests_total", []string{"action=compacted", "api=chat", "code=200", "model=rule"}},
		{before, "tokens_before_total", []string{"api=chat", "model=rule"}},
		{after, "tokens_after_total", []string{"api=chat", "model=rule"}},
		{before - after, "tokens_saved_total", []string{"api=chat", "model=rule"}},
		{0, "tokens_would_save_total", []string{"api=chat", "model=rule"}},
		{3, "context_fill_ratio", nil},
		{1, "cuts_total", []string{"model=rule"}},
		{1, "compactions_total", []string{"api=chat", "compactor=tool_result_pruning", "model=rule", "outcome=compacted"}},
		{1, "compaction_step_seconds", []string{"compactor=tool_result_pruning"}},
		{3, "request_duration_seconds", []string{"api=chat"}},
		{3, "overhead_seconds", []string{"api=chat"}},
		{0, "passed_total", []string{"reason=below_trigger"}},
	} {
		if got := f.metric(t, test.name, test.labels...); got != test.want {
			t.Errorf("%s%v is %v, want %v", test.name, test.labels, got, test.want)
		}
	}
	if before <= after || after == 0 {
		t.Errorf("nothing was saved: %v", res.Header)
	}
}

func TestObservedSavingsAreCountedApart(t *testing.T) {
	f := newFixture(t, &recorder{}, configured(func(p *Plan) { p.Mode = ModeObserve }))
	post(t, f, toolLoop("model", 40, 400), nil)
	f.accessLine(t, 0)
	labels := []string{"api=chat", "model=rule"}
	before, after := f.metric(t, "tokens_before_total", labels...), f.metric(t, "tokens_after_total", labels...)
	if before != after || before == 0 || f.metric(t, "tokens_saved_total", labels...) != 0 {
		t.Errorf("%v before, %v after", before, after)
	}
	if saved := f.metric(t, "tokens_would_save_total", labels...); saved <= 0 || saved >= before {
		t.Errorf("would save %v of %v", saved, before)
	}
	if n := f.metric(t, "requests_total", "action=observed", "api=chat", "code=200", "model=rule"); n != 1 {
		t.Errorf("counted %v times", n)
	}
}

// Both APIs refuse a streamed request with status 200.
func TestNothingIsSavedByAnswersThatFail(t *testing.T) {
	for name, event := range map[string]string{
		"an error in a chat stream":   `data: {"error":{"code":"context_length_exceeded","message":"x"}}`,
		"an error event":              "event: error\ndata: " + `{"type":"error","code":"context_length_exceeded","message":"x"}`,
		"a response that failed":      `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"server_error"}}}`,
		"a body with an error inside": `{"error":{"type":"invalid_request_error","message":"x"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, answerWith(200, "", [][]byte{[]byte(event + "\n\n")}), nil)
			post(t, f, toolLoop("model", 40, 400), nil)
			f.accessLine(t, 0)
			for _, metric := range []string{"tokens_before_total", "tokens_after_total", "tokens_saved_total"} {
				if got := f.metric(t, metric, "api=chat", "model=rule"); got != 0 {
					t.Errorf("%s is %v", metric, got)
				}
			}
		})
	}
}

func TestOtherTrafficIsCountedWithoutAModel(t *testing.T) {
	f := newFixture(t, &recorder{}, nil)
	do(t, http.MethodGet, f.url+"/v1/models/gpt-4o", nil, nil)
	f.accessLine(t, 0)
	if n := f.metric(t, "requests_total", "action=passed", "api=other", "code=200", "model="); n != 1 {
		t.Errorf("counted %v times", n)
	}
	if n := f.metric(t, "time_to_first_byte_seconds", "api=other"); n != 1 {
		t.Errorf("observed %v times", n)
	}
}
