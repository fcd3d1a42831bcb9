package main

import (
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/tokens"
)

// mostModelsFile is the largest file of models in bytes that is read: some ten times those there are.
const mostModelsFile = 32 << 20

// readModels returns the table in the file that models_file names, nil where it names none. Its error names the setting.
func readModels(cfg config.Config) (*tokens.Table, error) {
	if cfg.ModelsFile == "" {
		return nil, nil //nolint:nilnil // a nil table knows no model
	}
	content, err := readBounded(cfg.ModelsFile, mostModelsFile)
	if err != nil {
		return nil, &usageError{fmt.Errorf("models_file: %w", err)}
	}
	var host string
	if base, err := url.Parse(cfg.Upstream.BaseURL); err == nil {
		host = base.Hostname()
	}
	table, err := tokens.ReadTable(content, host)
	if err != nil {
		return nil, &usageError{fmt.Errorf("models_file: %s: %w", cfg.ModelsFile, err)}
	}
	return table, nil
}

// readBounded reads a file that has at most so many bytes. It waits for nobody who might write into a pipe.
func readBounded(name string, most int64) (content []byte, err error) {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no file", name)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content, err = io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return content, err
}
