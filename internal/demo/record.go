package demo

import "net/http"

// Record is one request as the upstream received it, and what became of it.
type Record struct {
	// Method, Path and RawQuery are as sent; Path is still escaped.
	Method, Path, RawQuery string
	// Header is what arrived, Host included.
	Header http.Header
	// Body is the exact bytes, still in the coding Content-Encoding names.
	Body []byte
	// PromptTokens is the upstream's own count; zero when the request was refused before counting.
	PromptTokens int
	// CachedTokens is how many of them were a prefix the previous request had too.
	CachedTokens int
	// DroppedReasoning is how many reasoning items the upstream left out of the prompt, because their input had changed.
	DroppedReasoning int
	// Status is the status of the response; zero when the client left before there was one.
	Status int
	// ErrorCode and ErrorMessage are the upstream's own refusal; both empty for accepted requests and injected faults. A
	// streamed response may be refused in its stream: then Status is 200.
	ErrorCode, ErrorMessage string
	// Canceled means that the client left before the answer was complete.
	Canceled bool
}

// Records returns the newest requests, oldest first, at most MaxRecords of them.
func (u *Upstream) Records() []Record {
	u.mu.Lock()
	defer u.mu.Unlock()
	out := make([]Record, len(u.records))
	for i, r := range u.records {
		out[i] = *r
	}
	return out
}

// Refusals returns the records of requests that the upstream refused by its own rules.
func (u *Upstream) Refusals() []Record {
	var out []Record
	for _, r := range u.Records() {
		if r.ErrorMessage != "" {
			out = append(out, r)
		}
	}
	return out
}

// Reset forgets records, pending faults, the prompt cache and all responses.
func (u *Upstream) Reset() {
	u.mu.Lock()
	u.records, u.faults = nil, nil
	u.mu.Unlock()
	u.cache.clear()
	u.memory.clear()
}

// remember adds a record that the request's handler fills in as it goes. Only the methods below may touch it from then on,
// because Records may be asked at any time.
func (u *Upstream) remember(r *http.Request, body []byte) *Record {
	header := r.Header.Clone()
	header.Set("Host", r.Host)
	record := &Record{
		Method: r.Method, Path: r.URL.EscapedPath(), RawQuery: r.URL.RawQuery,
		Header: header, Body: body,
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.records = append(u.records, record)
	if surplus := len(u.records) - u.opts.MaxRecords; surplus > 0 {
		u.records = append(u.records[:0:0], u.records[surplus:]...)
	}
	return record
}

// note sets what the request is answered with; problem is nil unless the upstream refuses it.
func (u *Upstream) note(record *Record, status int, problem *apiError) {
	u.mu.Lock()
	defer u.mu.Unlock()
	record.Status = status
	if problem != nil {
		record.ErrorCode, record.ErrorMessage = problem.code, problem.message
	}
}

// noteTokens sets the counts.
func (u *Upstream) noteTokens(record *Record, prompt, cached int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	record.PromptTokens, record.CachedTokens = prompt, cached
}

// noteDropped sets how much reasoning was dropped.
func (u *Upstream) noteDropped(record *Record, n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	record.DroppedReasoning = n
}

// noteCanceled says that the client left.
func (u *Upstream) noteCanceled(record *Record) {
	u.mu.Lock()
	defer u.mu.Unlock()
	record.Canceled = true
}
