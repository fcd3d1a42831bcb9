// Package tokens answers "how big is it?": the size of a conversation's items, of what stands beside them in a request,
// and of the context windows of known models.
//
// Three counters are on offer. The one for tiktoken vocabularies counts exactly what OpenAI's models read as text, with
// an estimate for the framing around it. The one for bytes needs no vocabulary and serves models whose tokenizer is
// unknown. The approximate one counts characters the way Haystack does.
//
// Vocabularies are part of the binary. Nothing here opens a file or a connection.
package tokens
