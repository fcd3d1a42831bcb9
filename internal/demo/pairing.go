package demo

import "strings"

// answers holds, by the index of each call that has one, the index of its output.
type answers map[int]int

// pairCalls finds the output of every call. An output answers the nearest call before it that names it and has no answer
// yet, as ids are used again. An output that finds none is refused.
func pairCalls(items []inputItem) (answers, *apiError) {
	found := answers{}
	var open []int
	for i, item := range items {
		switch {
		case item.isCall():
			open = append(open, i)
		case item.isOutput() && item.Answers != "":
			at := len(open) - 1
			for at >= 0 && !items[open[at]].answeredBy(item) {
				at--
			}
			if at < 0 {
				return nil, badInput("No tool call found for " + spoken(item.kind) + " with call_id " + item.Answers + ".")
			}
			found[open[at]] = i
			open = append(open[:at], open[at+1:]...)
		}
	}
	return found, nil
}

// spoken returns how OpenAI's messages name the items of a type. The wording is documented for functions and custom tools;
// for the others it is known from reports of users, or made alike.
func spoken(kind string) string { return strings.ReplaceAll(kind, "_", " ") }

// badInput is the refusal of items for what they are to each other.
func badInput(message string) *apiError { return badRequest("input", "", "%s", message) }

// checkAnswered refuses calls without an output, but for those that may wait for it.
func (a answers) checkAnswered(items []inputItem) *apiError {
	for i, item := range items {
		if _, ok := a[i]; !ok && item.isCall() && !item.async {
			return badInput("No tool output found for " + spoken(item.kind) + " " + item.Calls[0].ID + ".")
		}
	}
	return nil
}

// checkAdjacent refuses a call unless its output follows it with nothing in between but further calls and then outputs. A
// call that may wait for its output is not held to that. The words are DeepSeek's.
func (a answers) checkAdjacent(items []inputItem) *apiError {
	for i, item := range items {
		if !item.isCall() || item.async {
			continue
		}
		if end, ok := a[i]; !ok || !oneRun(items[i:end+1]) {
			return badRequest("", "invalid_request_error", "No tool output found for tool call %s.", item.Calls[0].ID)
		}
	}
	return nil
}

// oneRun reports whether items are calls and then outputs.
func oneRun(items []inputItem) bool {
	for i, item := range items {
		switch {
		case item.isOutput():
		case !item.isCall(), i > 0 && items[i-1].isOutput():
			return false
		}
	}
	return true
}

// checkApprovals refuses answers to approval requests that are not there. OpenAI's words for that are not published.
func checkApprovals(items []inputItem) *apiError {
	asked := map[string]bool{}
	for _, item := range items {
		switch {
		case item.kind == "mcp_approval_request":
			asked[item.id] = true
		case item.kind == kindApproval && !asked[item.Answers]:
			return badInput("No approval request found for approval response with approval_request_id " + item.Answers + ".")
		}
	}
	return nil
}
