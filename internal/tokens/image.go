package tokens

import "math"

// The sides of what models cut images into, in pixels.
const (
	tileSide  = 512
	patchSide = 32
)

// imageRule is how a family of models turns the dimensions of an image into tokens (OpenAI's guide "Images and vision",
// "Calculating costs"). The first two fields are for models that cut images into tiles, the others for those that cut
// them into patches.
type imageRule struct {
	base, tile int
	patch      float64 // tokens per patch
	most       int     // patches; a larger image is scaled down to so many
	mostAuto   int     // patches where the request does not ask for low or high detail; 0 means no bound
}

// imageRuleFor returns the rule of a model by its name. Models of other vendors and unknown ones get the rule of recent
// OpenAI models, which comes near what the others publish.
func imageRuleFor(model string) imageRule {
	const small = 1536
	rules := map[string]imageRule{
		"gpt-4":        {base: 85, tile: 170}, // with gpt-4.1 and gpt-4.5
		"gpt-4o":       {base: 85, tile: 170},
		"chatgpt":      {base: 85, tile: 170},
		"gpt-4o-mini":  {base: 2833, tile: 5667},
		"gpt-4.1-mini": {patch: 1.62, most: small, mostAuto: small},
		"gpt-4.1-nano": {patch: 2.46, most: small, mostAuto: small},
		"o1":           {base: 75, tile: 150},
		"o3":           {base: 75, tile: 150},
		"o4-mini":      {patch: 1.72, most: small, mostAuto: small},
		"gpt-5":        {base: 70, tile: 140}, // with gpt-5.1 to gpt-5.3
		"gpt-5-mini":   {patch: 1.62, most: small, mostAuto: small},
		"gpt-5-nano":   {patch: 2.46, most: small, mostAuto: small},
		"gpt-5.4":      {patch: 1.2, most: 2500, mostAuto: 10_000},
		"gpt-5.4-mini": {patch: 1.62, most: small, mostAuto: small},
		"gpt-5.4-nano": {patch: 2.46, most: small, mostAuto: small},
		"gpt-5.5":      {patch: 1.2, most: 2500, mostAuto: 10_000},
		"gpt-5.6":      {patch: 1.2, most: 2500, mostAuto: 10_000},
		"gpt-6":        {patch: 1.2, most: 2500},
	}
	if rule, _, ok := longestPrefix(rules, cleanName(model)); ok {
		return rule
	}
	return imageRule{patch: 1.2, most: 2500, mostAuto: 2500}
}

// tokens returns the cost of an image of so many pixels. Detail is low, high, or anything else, which leaves the choice
// to the model.
func (r imageRule) tokens(width, height int, detail string) int {
	w, h := float64(max(width, 1)), float64(max(height, 1))
	if r.tile > 0 {
		return r.tileTokens(w, h, detail)
	}
	most := r.mostAuto
	switch detail {
	case "low": // a picture of 512 by 512 pixels
		most = (tileSide / patchSide) * (tileSide / patchSide)
	case "high":
		most = r.most
	}
	return int(math.Ceil(patches(w, h, most) * r.patch))
}

// tileTokens fits the image into 2048 by 2048 pixels, then its short side into 768, and counts tiles.
func (r imageRule) tileTokens(w, h float64, detail string) int {
	if detail == "low" {
		return r.base
	}
	w, h = scale(w, h, 2048/max(w, h))
	w, h = scale(w, h, 768/min(w, h))
	return r.base + r.tile*int(math.Ceil(w/tileSide)*math.Ceil(h/tileSide))
}

// scale makes an image smaller by a factor, never larger.
func scale(w, h, factor float64) (float64, float64) {
	factor = min(factor, 1)
	return w * factor, h * factor
}

// patches returns how many patches cover an image. If they are more than most, the image is first scaled down: so that
// its area is that of so many patches, and then a little more, so that whole patches cover one of its sides.
func patches(w, h float64, most int) float64 {
	count := math.Ceil(w/patchSide) * math.Ceil(h/patchSide)
	if most == 0 || count <= float64(most) {
		return count
	}
	factor := math.Sqrt(float64(most) * patchSide * patchSide / (w * h))
	across, down := w*factor/patchSide, h*factor/patchSide
	// A very long and narrow image keeps one patch.
	fit := min(max(math.Floor(across), 1)/across, max(math.Floor(down), 1)/down)
	return min(math.Ceil(round(across*fit))*math.Ceil(round(down*fit)), float64(most))
}

// round removes the error of floating point, which would make a whole number of patches one more.
func round(x float64) float64 { return math.Round(x*1e6) / 1e6 }
