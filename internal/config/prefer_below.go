package config

import (
	"errors"
	"math"
)

// PreferBelow is a size of the input that is not to be reached although the model accepts more. At most one of the two is set;
// neither means that there is none.
type PreferBelow struct {
	// Tokens is the size in tokens.
	Tokens int
	// PriceTier stands for the size above which each token of input costs more, where that is known.
	PriceTier bool
}

const priceTier = "price_tier"

// parsePreferBelow reads a positive number of tokens, or price_tier.
func parsePreferBelow(value any) (PreferBelow, error) {
	if value == priceTier {
		return PreferBelow{PriceTier: true}, nil
	}
	tokens, ok := wholeNumber(value)
	if !ok || tokens < 1 || tokens > math.MaxInt32 {
		return PreferBelow{}, errors.New("must be a positive number of tokens, or price_tier, got " + describe(value))
	}
	return PreferBelow{Tokens: int(tokens)}, nil
}
