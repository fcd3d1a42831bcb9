package main

import "strings"

// matches reports whether a model is meant by the match of a configured one: by the name the client sends, or by the name
// of the model that was fine-tuned (ft:gpt-4o:organization::id). Case does not matter.
func matches(match, model string) bool {
	match, model = strings.ToLower(match), strings.ToLower(model)
	tuned, isTuned := strings.CutPrefix(model, "ft:")
	tuned, _, _ = strings.Cut(tuned, ":")
	return glob(match, model) || isTuned && glob(match, tuned)
}

// glob reports whether name fits pattern, where * stands for any characters, none included.
func glob(pattern, name string) bool {
	parts := strings.Split(pattern, "*")
	rest, ok := strings.CutPrefix(name, parts[0])
	if !ok || len(parts) == 1 {
		return ok && rest == ""
	}
	last := len(parts) - 1
	for _, part := range parts[1:last] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, parts[last])
}
