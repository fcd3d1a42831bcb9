package main

import (
	"bytes"
	"crypto/x509"
	"fmt"
	"os"
	"strings"

	"github.com/compactproxy/compactproxy/internal/config"
	"github.com/compactproxy/compactproxy/internal/proxy"
)

// credentials are the secrets and certificates of a configuration, read from its files.
type credentials struct {
	upstream   string // empty when clients bring their own
	summarizer string // empty when it gets what the upstream gets, or none
	clients    []proxy.ClientKey
	roots      *x509.CertPool // nil stands for those of the system
}

// readCredentials reads what the configuration names; the summarizer's key only where something is to be summarized. Its error
// names the setting.
func readCredentials(cfg config.Config, summarize bool) (c credentials, err error) {
	if c.upstream, err = keyOrFile("upstream.api_key_file", cfg.Upstream.APIKey, cfg.Upstream.APIKeyFile); err != nil {
		return credentials{}, err
	}
	if summarize {
		c.summarizer, err = keyOrFile("summarizer.api_key_file", cfg.Summarizer.APIKey, cfg.Summarizer.APIKeyFile)
	}
	if err != nil {
		return credentials{}, err
	}
	if c.clients, err = clientKeys(cfg.Server.Keys); err != nil {
		return credentials{}, err
	}
	c.roots, err = rootCAs(cfg.Upstream.CAFile)
	return c, err
}

// keyOrFile returns a key, or what is in the file of a name. Setting is that of the file.
func keyOrFile(setting, key, file string) (string, error) {
	if file == "" {
		return key, nil
	}
	content, err := readNonEmpty(setting, file)
	return string(bytes.TrimSpace(content)), err
}

// clientKeys returns the keys that clients may present. A file may hold several of one name, one a line.
func clientKeys(configured []config.Key) ([]proxy.ClientKey, error) {
	var keys []proxy.ClientKey
	for i, key := range configured {
		if key.KeyFile == "" {
			keys = append(keys, proxy.ClientKey{Name: key.Name, Secret: key.Key})
			continue
		}
		content, err := readNonEmpty(fmt.Sprintf("server.keys[%d].key_file", i), key.KeyFile)
		if err != nil {
			return nil, err
		}
		for secret := range strings.FieldsSeq(string(content)) {
			keys = append(keys, proxy.ClientKey{Name: key.Name, Secret: secret})
		}
	}
	return keys, nil
}

// rootCAs returns the certificates of the system with those of a file beside them: the summarizer and webhooks may have
// others than the upstream.
func rootCAs(file string) (*x509.CertPool, error) {
	const setting = "upstream.ca_file"
	if file == "" {
		return nil, nil //nolint:nilnil // nil is the system's pool
	}
	content, err := readNonEmpty(setting, file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool() // a machine without any
	}
	if !pool.AppendCertsFromPEM(content) {
		return nil, &usageError{fmt.Errorf("%s: %s holds no certificate in PEM", setting, file)}
	}
	return pool, nil
}

// readNonEmpty reads a file that must say something. Setting is what names it.
func readNonEmpty(setting, file string) ([]byte, error) {
	content, err := os.ReadFile(file)
	if err == nil && len(bytes.TrimSpace(content)) == 0 {
		err = fmt.Errorf("%s is empty", file)
	}
	if err != nil {
		return nil, &usageError{fmt.Errorf("%s: %w", setting, err)}
	}
	return content, nil
}
