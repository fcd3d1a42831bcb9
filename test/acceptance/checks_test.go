package acceptance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// bodyCheck compares what a client sent with what was forwarded and returns what is wrong.
type bodyCheck func(original, forwarded *body) []string

// bodyChecks are the checks that need nothing but the two bodies.
var bodyChecks = map[string]bodyCheck{
	"PAIR":               checkPairs,
	"SYS":                checkSystem,
	"LASTUSER":           checkLastUser,
	"FIRSTUSER":          checkFirstUser,
	"LASTSAME":           checkLastSame,
	"NONEMPTY":           checkNonEmpty,
	"STARTUSER":          checkStartUser,
	"ALT":                checkAlternation,
	"UNCHANGED":          checkUnchanged,
	"UNCHANGED_ITEMS":    checkUnchangedItems,
	"REASON":             checkReasoning,
	"KEPTRAW":            checkKeptRaw,
	"TOPKEYS":            checkTopKeys,
	"TOPKEYS_RAW":        checkTopKeysRaw,
	"NUMTEXT":            checkNumbers,
	"UTF8":               checkUTF8,
	"TAILGROUP":          checkTailGroup,
	"LASTGROUP_WHOLE":    checkLastGroupWhole,
	"NO_EMPTY_ASSISTANT": checkNoEmptyAssistant,
}

// progressChecks ask for progress, so they are asked of those chains only that can make any; see ableToShrink.
var progressChecks = map[string]bodyCheck{
	"SMALLER":      checkSmaller,
	"MUST_TRIGGER": checkSmaller,
}

// checkPairs: every result follows its own call, in the chat API directly behind the message that made it; every call that
// had a result still has exactly one. A history that was broken before may be so after.
func checkPairs(o, f *body) []string {
	was, is := o.pairs(), f.pairs()
	var problems []string
	if len(was.violations) == 0 {
		problems = is.violations
	}
	for _, id := range is.unanswered {
		if !slices.Contains(was.unanswered, id) {
			problems = append(problems, fmt.Sprintf("call %q lost its result", id))
		}
	}
	return problems
}

// checkSystem: all system and developer messages are there, as they were and in their order, the leading ones in place,
// and none was added.
func checkSystem(o, f *body) []string {
	var problems []string
	was, is := filter(o.messages, message.isSystem), filter(f.messages, message.isSystem)
	if !slices.EqualFunc(was, is, message.equal) {
		problems = append(problems, "system messages changed, were added or changed places")
	}
	lead := len(o.messages)
	if i := slices.IndexFunc(o.messages, func(m message) bool { return !m.isSystem() }); i >= 0 {
		lead = i
	}
	if len(f.messages) < lead || !slices.EqualFunc(o.messages[:lead], f.messages[:lead], message.equal) {
		problems = append(problems, "the leading system messages are not in place")
	}
	return problems
}

// checkLastUser: the newest user message is there as it was. A note about removed steps of its task may stand behind it.
func checkLastUser(o, f *body) []string {
	users := filter(o.messages, isUser)
	if len(users) > 0 && indexFrom(f.messages, 0, users[len(users)-1].equal) < 0 {
		return []string{"the newest user message is missing or changed"}
	}
	return nil
}

// checkFirstUser: the text of the first user message is there, if only in a note.
func checkFirstUser(o, f *body) []string {
	was := filter(o.messages, isUser)
	said := ""
	for _, m := range filter(f.messages, isUser) {
		said += m.content()
	}
	if len(was) > 0 && !strings.Contains(said, was[0].content()) {
		return []string{"the first user message is gone"}
	}
	return nil
}

func checkLastSame(o, f *body) []string {
	if len(f.messages) == 0 || !f.messages[len(f.messages)-1].equal(o.messages[len(o.messages)-1]) {
		return []string{"the last message differs"}
	}
	return nil
}

func checkNonEmpty(_, f *body) []string {
	if !slices.ContainsFunc(f.messages, isUser) {
		return []string{"there is no user message"}
	}
	return nil
}

func checkStartUser(_, f *body) []string {
	rest := filter(f.messages, func(m message) bool { return !m.isSystem() })
	if len(rest) == 0 || !isUser(rest[0]) {
		return []string{"the first message after system is not a user message"}
	}
	return nil
}

// checkAlternation: no new neighbours of the same role, tool groups left out.
func checkAlternation(o, f *body) []string {
	if was, is := neighbours(o.messages), neighbours(f.messages); is > was {
		return []string{fmt.Sprintf("%d neighbours of the same role, there were %d", is, was)}
	}
	return nil
}

func neighbours(messages []message) int {
	n := 0
	last := ""
	for _, m := range messages {
		if isUser(m) || m.role() == "assistant" && len(m.calls()) == 0 {
			if m.role() == last {
				n++
			}
			last = m.role()
		}
	}
	return n
}

func checkUnchanged(o, f *body) []string {
	if !bytes.Equal(o.raw, f.raw) {
		return []string{"the bytes differ"}
	}
	return nil
}

func checkUnchangedItems(o, f *body) []string {
	if !slices.EqualFunc(o.messages, f.messages, message.equal) {
		return []string{"items changed"}
	}
	return nil
}

// checkReasoning: whatever stood directly behind reasoning still does, and the one is not there without the other.
func checkReasoning(o, f *body) []string {
	var problems []string
	places := make(map[int]int)
	for i, from := range align(o.messages, f.messages) {
		places[from.of] = i
	}
	for i, m := range o.messages[:len(o.messages)-1] {
		lead, leads := places[i]
		next, follows := places[i+1]
		if m.isReasoning() && (leads != follows || leads && next != lead+1) {
			problems = append(problems, fmt.Sprintf("reasoning %d and what follows it were torn apart", i))
		}
	}
	return problems
}

// checkKeptRaw: every message is an original one, byte for byte, or a result with nothing but another content, or one of
// at most two that were added in the name of the user or the assistant.
func checkKeptRaw(o, f *body) []string {
	var problems []string
	n := 0
	for i, from := range align(o.messages, f.messages) {
		if from.kind != added {
			continue
		}
		n++
		if role := f.messages[i].role(); role != "user" && role != "assistant" {
			problems = append(problems, fmt.Sprintf("message %d was added with role %q", i, role))
		}
	}
	if n > 2 {
		problems = append(problems, fmt.Sprintf("%d messages are neither original nor shortened results", n))
	}
	return problems
}

func checkTopKeys(o, f *body) []string {
	var problems []string
	for key, value := range o.top {
		if is, ok := f.top[key]; !ok || !reflect.DeepEqual(value, is) {
			problems = append(problems, fmt.Sprintf("key %q is lost or changed", key))
		}
	}
	if len(f.top) > len(o.top) {
		problems = append(problems, "keys were added")
	}
	return problems
}

// checkTopKeysRaw: everything around the messages has its bytes, and so the order of its keys.
func checkTopKeysRaw(o, f *body) []string {
	if !bytes.Equal(o.before, f.before) || !bytes.Equal(o.after, f.after) {
		return []string{"the bytes around the messages differ"}
	}
	return nil
}

func checkNumbers(o, f *body) []string {
	var problems []string
	for _, number := range regexp.MustCompile(`\d{12,}`).FindAll(o.raw, -1) {
		if !bytes.Contains(f.raw, number) {
			problems = append(problems, fmt.Sprintf("number %s is lost", number))
		}
	}
	return problems
}

// checkUTF8: a cut inside a character would leave a replacement character, or half of a surrogate pair.
func checkUTF8(o, f *body) []string {
	var problems []string
	if !utf8.Valid(f.raw) {
		problems = append(problems, "invalid UTF-8")
	}
	if bytes.Count(f.raw, []byte("\uFFFD")) > bytes.Count(o.raw, []byte("\uFFFD")) {
		problems = append(problems, "replacement characters were added")
	}
	pairs := regexp.MustCompile(`(?i)\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}`)
	if regexp.MustCompile(`(?i)\\ud[89a-f][0-9a-f]{2}`).Match(pairs.ReplaceAll(f.raw, nil)) {
		problems = append(problems, "half of a surrogate pair")
	}
	return problems
}

// checkTailGroup: the newest message that calls tools, or the last message, is there with all its results.
func checkTailGroup(o, f *body) []string {
	group := tailGroup(o.messages)
	tail := f.messages[max(0, len(f.messages)-len(group)):]
	same := slices.EqualFunc(group, tail, func(a, b message) bool {
		return a.role() == b.role() && a.kind() == b.kind() && a.answers() == b.answers()
	})
	if !same {
		return []string{"the newest group is incomplete"}
	}
	return nil
}

func checkLastGroupWhole(o, f *body) []string {
	group := tailGroup(o.messages)
	if !slices.EqualFunc(group, f.messages[max(0, len(f.messages)-len(group)):], message.equal) {
		return []string{"the newest group changed"}
	}
	return nil
}

func tailGroup(messages []message) []message {
	i := len(messages) - 1
	for i > 0 && messages[i].isResult() {
		i--
	}
	return messages[i:]
}

func checkNoEmptyAssistant(o, f *body) []string {
	var problems []string
	for i, m := range f.messages {
		if m.role() != "assistant" || len(m.calls()) > 0 || m.function() != "" || m.content() != "" {
			continue
		}
		if m.fields["reasoning_content"] != nil || indexFrom(o.messages, 0, m.equal) < 0 {
			problems = append(problems, fmt.Sprintf("message %d of the assistant says nothing", i))
		}
	}
	return problems
}

func checkSmaller(o, f *body) []string {
	if is, was := jsonSize(f.messages), jsonSize(o.messages); is >= was {
		return []string{fmt.Sprintf("not smaller: %d bytes, were %d", is, was)}
	}
	return nil
}

// jsonSize is the size of messages in bytes, whitespace aside.
func jsonSize(messages []message) int {
	n := 0
	for _, m := range messages {
		var compact bytes.Buffer
		if json.Compact(&compact, m.raw) == nil {
			n += compact.Len()
		}
	}
	return n
}

func isUser(m message) bool { return m.role() == "user" }

func filter(messages []message, is func(message) bool) []message {
	var filtered []message
	for _, m := range messages {
		if is(m) {
			filtered = append(filtered, m)
		}
	}
	return filtered
}
