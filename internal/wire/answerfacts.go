package wire

import (
	"cmp"
	"slices"
	"strconv"
)

// mostIdentifier is the longest identifier that is kept, in bytes.
const mostIdentifier = 64

// statement is what one JSON text says. Filling it allocates nothing, because most texts of a stream say nothing.
type statement struct {
	complete    bool
	counts      counts
	identifiers [firstCount - firstIdentifier]identifier
	dropped     map[string]int
	calls       bool
}

// set takes the scalar at a place, as written; nil when it is too long to be looked at.
func (s *statement) set(p place, value []byte) {
	switch {
	case p >= firstCount:
		s.counts[p-firstCount].set(value)
	case p >= firstIdentifier:
		s.at(p).set(value)
	}
}

// at returns the identifier at a place.
func (s *statement) at(p place) *identifier { return &s.identifiers[p-firstIdentifier] }

// close notes the end of the container at a place.
func (s *statement) close(p place) {
	switch p {
	case atText:
		s.complete = true
	case atTransformation:
		s.countTransformation()
	case atChoice:
		finish := s.at(atFinishReason)
		s.calls = s.calls || finish.is("tool_calls") || finish.is("function_call")
	case atOutputItem:
		kind := s.at(atOutputItemType)
		s.calls = s.calls || isClientCall(kind.text())
		kind.length = 0
	}
}

func (s *statement) countTransformation() {
	if s.at(atTransformationType).is("reasoning") && s.at(atTransformationAction).is("removed") {
		if s.dropped == nil {
			s.dropped = map[string]int{}
		}
		reason := s.at(atTransformationReason).text()
		if !slices.Contains(DropReasons(), reason) {
			reason = otherReason
		}
		s.dropped[reason]++
	}
	for p := atTransformationType; p <= atTransformationReason; p++ {
		s.at(p).length = 0
	}
}

// failure returns code and type of an error. Some servers write it without an object of its own.
func (s *statement) failure() (code, kind string) {
	code, kind = s.at(atErrorCode).text(), s.at(atErrorType).text()
	if code == "" && kind == "" && (s.at(atType).is("error") || s.at(atObject).is("error")) {
		return s.at(atCode).text(), s.at(atType).text()
	}
	return code, kind
}

// finish returns why the model stopped, empty when it has not.
func (s *statement) finish() string {
	final := s.at(atStatus).text()
	switch final {
	case "completed", "incomplete", "failed", "cancelled":
	default: // it is still at work
		final = ""
	}
	return cmp.Or(s.at(atFinishReason).text(), s.at(atIncompleteReason).text(), final)
}

// facts are what the texts of a response say together.
type facts struct {
	counts               counts
	finish               string
	errorCode, errorType string
	dropped              map[string]int
	calls                bool
}

// add adds a text. What it says replaces what earlier ones said.
func (f *facts) add(s *statement) {
	if s.counts.known() {
		f.counts = s.counts
	}
	if s.dropped != nil {
		f.dropped = s.dropped
	}
	if code, kind := s.failure(); code != "" || kind != "" {
		f.errorCode, f.errorType = code, kind
	}
	f.finish = cmp.Or(s.finish(), f.finish)
	f.calls = f.calls || s.calls
}

func (f *facts) answer() Answer {
	a := Answer{Finish: f.finish, ErrorCode: f.errorCode, ErrorType: f.errorType, DroppedReasoning: f.dropped, Calls: f.calls}
	if f.counts.known() {
		a.Usage = map[UsageKind]int{}
	}
	for _, kind := range UsageKinds() {
		if c := f.counts[kind]; c.known {
			a.Usage[kind] = c.tokens
		}
	}
	return a
}

type counts [usageKinds]count

func (c *counts) known() bool {
	return slices.ContainsFunc(c[:], func(c count) bool { return c.known })
}

// count is a number of tokens that may be unknown.
type count struct {
	tokens int
	known  bool
}

// set takes a number as written. Anything but a non-negative integer counts as none. Where two members say the same thing
// the larger one is right: some servers leave the other API's member at 0.
func (c *count) set(value []byte) {
	if n, err := strconv.ParseUint(string(value), 10, 31); err == nil {
		c.tokens, c.known = max(c.tokens, int(n)), true
	}
}

// identifier is a name made for programs, so that it can be shown in logs. It is empty when there is none.
type identifier struct {
	length  int
	storage [mostIdentifier]byte
}

// set takes a string or a number as written. Anything else, and what could be text for people, changes nothing.
func (i *identifier) set(value []byte) {
	if len(value) > 0 && value[0] == '"' {
		value = unquoteName(value)
	} else if len(value) == 0 || value[0] > '9' { // a literal
		return
	}
	if len(value) > 0 && len(value) <= mostIdentifier && !slices.ContainsFunc(value, isForeign) {
		i.length = copy(i.storage[:], value)
	}
}

func (i *identifier) text() string { return string(i.storage[:i.length]) }

func (i *identifier) is(text string) bool { return string(i.storage[:i.length]) == text }

// isForeign reports whether no identifier holds the byte.
func isForeign(c byte) bool {
	isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
	isDigit := '0' <= c && c <= '9'
	return !isLetter && !isDigit && c != '_' && c != '.' && c != '-'
}
