package config

// nearest returns the word that differs least from name, and false when none is similar enough to be what was meant.
func nearest(name string, words []string) (string, bool) {
	best, least := "", max(1, (len(name)+1)/3)+1
	for _, word := range words {
		if d := distance(name, word); d < least {
			best, least = word, d
		}
	}
	return best, best != ""
}

// distance is the Levenshtein distance in bytes: the number of insertions, deletions and replacements that turn a
// into b.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := diagonal
			if a[i] != b[j] {
				replaced++
			}
			diagonal = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
