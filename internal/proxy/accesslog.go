package proxy

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/go-chi/chi/v5"

	"github.com/compactproxy/compactproxy/internal/wire"
)

// account is the outermost middleware: it writes one line of the access log and moves the metrics for every request,
// however it ends.
func (p *Proxy) account(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		x := &exchange{start: time.Now(), api: apiOther, response: &responseRecorder{ResponseWriter: w}}
		r = r.WithContext(withExchange(r.Context(), x))
		if r.Body != nil && r.Body != http.NoBody {
			x.request = &received{ReadCloser: r.Body}
			r.Body = x.request
		}
		returned := false
		p.metrics.inFlight.Inc()
		defer func() { // without recovering: a panic is how a response is aborted
			p.metrics.inFlight.Dec()
			x.answer = x.response.tap.end()
			end := x.outcome(r.Context(), returned)
			duration := time.Since(x.start)
			p.metrics.observe(x, end, duration)
			p.calibrate(r.Context(), x)
			p.logAccess(r, x, end, duration)
			p.prepare(x)
		}()
		next.ServeHTTP(x.response, r)
		returned = true
	})
}

// logAccess writes the line. It holds no query, no header, no text and no model name of the client's.
func (p *Proxy) logAccess(r *http.Request, x *exchange, end outcome, duration time.Duration) {
	attrs := []slog.Attr{
		slog.String("method", r.Method),
		slog.String("route", routeOf(r)),
		slog.String("api", x.api),
		slog.Int("status", end.status),
		slog.Float64("duration_ms", milliseconds(duration)),
		slog.Float64("overhead_ms", milliseconds(x.overhead)),
		slog.Int64("request_bytes", x.request.size()),
		slog.Int64("response_bytes", x.response.bytes),
	}
	attrs = append(attrs, x.decision.attrs()...)
	attrs = append(attrs, answerAttrs(x.answer)...)
	attrs = append(attrs, textAttrs([]textAttr{{"profile", x.profile}, {"client", x.client}})...)
	if x.retried {
		attrs = append(attrs, slog.String("retried", retriedOverflow))
	}
	if x.suspectsTruncation() {
		attrs = append(attrs, slog.Bool("suspected_truncation", true))
	}
	if end.aborted {
		attrs = append(attrs, slog.Bool("aborted", true))
	}
	switch cause := context.Cause(r.Context()); {
	case x.failure != nil:
		attrs = append(attrs, slog.String("error", failureText(r.Context(), x.failure)))
	case end.aborted && cause != nil:
		attrs = append(attrs, slog.String("error", cause.Error()))
	}
	level := slog.LevelInfo
	if x.failure != nil && end.status >= http.StatusInternalServerError || x.decision.reason == InternalError ||
		x.suspectsTruncation() {
		level = slog.LevelWarn
	}
	p.logger.LogAttrs(r.Context(), level, "request", attrs...)
}

// failureText says what went wrong, without a word of what the upstream sent: net/http quotes an answer that is not HTTP.
func failureText(ctx context.Context, err error) string {
	var network *net.OpError
	var certificate *tls.CertificateVerificationError
	var timeout interface{ Timeout() bool }
	var sent *requestBodyError
	switch {
	case errors.As(err, &network), errors.As(err, &certificate), errors.As(err, &sent), ctx.Err() != nil,
		errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return err.Error()
	default:
		return asAPIError(ctx, err).code
	}
}

func (d decision) attrs() []slog.Attr {
	attrs := textAttrs([]textAttr{
		{"model", d.rule},
		{"plan", d.plan},
		{"action", string(d.action)},
		{"reason", string(d.reason)},
		{"cut", d.cut},
		{"steps", d.steps()},
	})
	if d.counted {
		saved := "tokens_saved"
		if d.action == observed {
			saved = "tokens_would_save"
		}
		attrs = append(attrs, slog.Int("tokens_before", d.before), slog.Int("tokens_after", d.after), slog.Int(saved, d.saved()))
	}
	return attrs
}

// answerAttrs shows what the upstream counted and how the answer ended. All texts are identifiers.
func answerAttrs(a wire.Answer) []slog.Attr {
	var attrs []slog.Attr
	for _, kind := range []wire.UsageKind{wire.InputTokens, wire.OutputTokens, wire.CachedTokens} {
		if tokens, ok := a.Usage[kind]; ok {
			attrs = append(attrs, slog.Int("usage_"+kind.String(), tokens))
		}
	}
	return append(attrs, textAttrs([]textAttr{
		{"finish", a.Finish},
		{"upstream_error", errorName(a)},
	})...)
}

// errorName returns the code of an error, or its type where the code only repeats the status.
func errorName(a wire.Answer) string {
	if _, err := strconv.Atoi(a.ErrorCode); err == nil {
		return cmp.Or(a.ErrorType, a.ErrorCode)
	}
	return cmp.Or(a.ErrorCode, a.ErrorType)
}

type textAttr struct{ key, value string }

// textAttrs leaves out what is empty.
func textAttrs(texts []textAttr) []slog.Attr {
	var attrs []slog.Attr
	for _, t := range texts {
		if t.value != "" {
			attrs = append(attrs, slog.String(t.key, t.value))
		}
	}
	return attrs
}

// routeOf returns the pattern that matched a request, or where it only says "anything", the first segment of the path, and
// the second where one of the two is a version: further ones hold ids and model names.
func routeOf(r *http.Request) string {
	pattern := chi.RouteContext(r.Context()).RoutePattern()
	if !strings.HasSuffix(pattern, "/*") && pattern != "" {
		return pattern
	}
	path := trimProfile(r.URL.EscapedPath())
	segments, kept := strings.Split(path, "/"), 2 // the first is what stands before the leading slash
	if hasVersion(path) {
		kept = 3
	}
	if len(segments) > kept {
		segments = append(segments[:kept], "*")
	}
	return strings.Join(segments, "/")
}

func milliseconds(d time.Duration) float64 {
	return float64(d.Round(time.Microsecond)) / float64(time.Millisecond)
}
