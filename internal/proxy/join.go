package proxy

import (
	"net/url"
	"strings"
)

const (
	profilesPrefix = "/profiles/"
	azurePrefix    = "/openai/"
)

// upstreamURL returns where a request goes whose URL is client. The path keeps its escapes as sent, and the query stays
// raw; a query in base comes first.
func upstreamURL(base, client *url.URL) *url.URL {
	target := *base
	target.RawPath = joinPath(base.EscapedPath(), trimProfile(client.EscapedPath()))
	// Both paths were parsed before, so the escapes are valid.
	target.Path, _ = url.PathUnescape(target.RawPath)
	target.RawQuery = joinQuery(base.RawQuery, client.RawQuery)
	target.ForceQuery = client.ForceQuery
	target.Fragment, target.RawFragment = "", ""
	return &target
}

// joinPath joins the escaped path of a base URL and the escaped path a client asked for, so that an agent may set its
// base URL with or without /v1:
//
//   - a path below /openai/ is Azure's and stands for itself,
//   - a base without a path takes the client's path, with /v1 in front where the client omitted the version,
//   - any other base replaces one leading /v1 of the client's path.
func joinPath(base, client string) string {
	base = strings.TrimRight(base, "/")
	switch {
	case strings.HasPrefix(client, azurePrefix):
		return client
	case base != "":
		return base + trimVersion(client)
	case hasVersion(client):
		return client
	default:
		return "/v1" + client
	}
}

func joinQuery(base, client string) string {
	if base == "" || client == "" {
		return base + client
	}
	return base + "&" + client
}

// trimProfile removes a leading /profiles/NAME from an escaped path.
func trimProfile(path string) string {
	rest, ok := strings.CutPrefix(path, profilesPrefix)
	if !ok {
		return path
	}
	slash := strings.IndexByte(rest, '/')
	if slash <= 0 {
		return path
	}
	return rest[slash:]
}

// trimVersion removes one leading /v1 from a path.
func trimVersion(path string) string {
	if rest, ok := strings.CutPrefix(path, "/v1"); ok && (rest == "" || rest[0] == '/') {
		return rest
	}
	return path
}

// hasVersion reports whether one of the first two segments of a path is a version: /v1/..., /v1beta/..., /api/v1/...
func hasVersion(path string) bool {
	segments := strings.SplitN(path, "/", 4)
	for _, segment := range segments[1:min(3, len(segments))] {
		if len(segment) >= 2 && segment[0] == 'v' && '0' <= segment[1] && segment[1] <= '9' {
			return true
		}
	}
	return false
}
