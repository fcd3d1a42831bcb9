package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// fingerprint names a plan by all that decides where it cuts: two proxies with the same fingerprint forward the same bytes
// for the same history at the same upstream. It is the beginning of a SHA-256, in hexadecimal. Messages is how many a chat request
// may hold, nil where the upstream decides.
func fingerprint(plan compactor.Plan, counter tokens.Spec, messages *int) string {
	type step struct {
		Name       string
		Parameters compactor.Compactor
		Condition  compactor.Condition
	}
	steps := make([]step, len(plan.Chain))
	for i, s := range plan.Chain {
		steps[i] = step{s.Name(), s.Compactor, s.Condition}
	}
	parts := []any{counter, budget(plan.Budget), steps, plan.ProtectOpening, plan.RunAll}
	if messages != nil {
		parts = append(parts, messages)
	}
	canonical, err := json.Marshal(parts)
	if err != nil {
		panic(err) // these are numbers, texts and lists of them, and the configuration refuses infinite ones
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:6])
}

// budget is compactor.Budget without what most plans do not have: it was added later.
type budget struct {
	Window               int
	MaxInput             int
	PreferBelow          int `json:",omitempty"`
	Margin               int
	CompactAt, CompactTo float64
	PrepareAt            float64 `json:",omitempty"`
}
