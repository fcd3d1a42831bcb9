package tokens

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
)

// chatLatest is the rule for the models that ChatGPT uses, whatever their version.
const chatLatest = "*-chat-latest"

// modelRow is a row of models.csv, whose head describes the columns.
type modelRow struct {
	model   Model
	aliases []string
}

// readRows returns the rows of a table in the form of models.csv. It panics on any other: the table is part of the program.
func readRows(text string) []modelRow {
	reader := csv.NewReader(strings.NewReader(text))
	reader.Comment = '#'
	records, err := reader.ReadAll()
	if err != nil {
		panic(fmt.Errorf("models.csv: %w", err))
	}
	rows := make([]modelRow, len(records)-1)
	for i, record := range records[1:] { // the names of the columns are above them
		rows[i] = modelRow{
			model: Model{
				Rule:      record[0],
				Window:    tokensIn(record[2]),
				MaxInput:  tokensIn(record[3]),
				MaxOutput: tokensIn(record[4]),
				PriceTier: tokensIn(record[5]),
				Encoding:  cmp.Or(record[6], O200KBase),
			},
			aliases: strings.Fields(record[1]),
		}
	}
	return rows
}

// tokensIn returns a number of tokens, 0 for an empty field.
func tokensIn(field string) int {
	if field == "" {
		return 0
	}
	n, err := strconv.Atoi(field)
	if err != nil {
		panic(fmt.Errorf("models.csv: %w", err))
	}
	return n
}
