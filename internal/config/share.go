package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Share is a number of tokens, given outright (Tokens) or as a percentage of a total (Percent, 0 to 100). At most one
// of the two is set; neither means 0 tokens.
type Share struct {
	Tokens  int
	Percent float64
}

// Of returns the share in tokens of a total in tokens, rounded down.
func (s Share) Of(total int) int {
	if s.Percent > 0 {
		return int(float64(total) * s.Percent / 100)
	}
	return s.Tokens
}

// String returns the share as it is written in the file: 1200 or 25%.
func (s Share) String() string {
	if s.Percent > 0 {
		return strconv.FormatFloat(s.Percent, 'f', -1, 64) + "%"
	}
	return strconv.Itoa(s.Tokens)
}

// parseShare reads a whole number of tokens, or a text such as "25%".
func parseShare(value any) (Share, error) {
	invalid := errors.New("must be a number of tokens, or a percentage from 0% to 100%, got " + describe(value))
	if text, ok := value.(string); ok {
		number, found := strings.CutSuffix(text, "%")
		percent, err := strconv.ParseFloat(number, 64)
		if !found || err != nil || !(percent >= 0 && percent <= 100) {
			return Share{}, invalid
		}
		return Share{Percent: percent}, nil
	}
	tokens, ok := wholeNumber(value)
	if !ok || tokens < 0 || tokens > math.MaxInt32 {
		return Share{}, invalid
	}
	return Share{Tokens: int(tokens)}, nil
}
