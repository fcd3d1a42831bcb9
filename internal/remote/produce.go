package remote

import (
	"context"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// job is a summary to be written: all that is needed of the request, and nothing that keeps its body in memory.
type job struct {
	key        store.Key
	credential Credential
	model      Model
	prompt     compactor.Prompt
	blocks     []string // of the transcript
}

func (s *Summarizer) job(key store.Key, caller Caller, of compactor.SummaryRequest) job {
	t := &transcript{style: of.Prompt.Style}
	return job{
		key: key, credential: s.credential(caller), model: s.model(caller), prompt: of.Prompt, blocks: t.blocks(of.Items),
	}
}

// bytes is the size of the transcript.
func (j job) bytes() int {
	sum := 0
	for _, block := range j.blocks {
		sum += len(block)
	}
	return sum
}

// write has the text written and remembers it.
func (s *Summarizer) write(ctx context.Context, j job, as Outcome) result {
	started := s.options.Now()
	event := SummaryEvent{}
	text, err := s.ask(ctx, j, &event)
	var written result
	written, event.Outcome, event.Reason = s.keep(ctx, j.key, text, err, as)
	event.Duration = s.options.Now().Sub(started)
	s.options.Observer.Summary(event)
	return written
}

// ask makes the calls: each reads the summary of the ones before as an earlier one.
func (s *Summarizer) ask(ctx context.Context, j job, event *SummaryEvent) (text string, err error) {
	splitter := newSplitter(j.model, j.prompt, s.options.MaxOutputTokens, s.options.MaxCalls)
	parts, err := splitter.split(j.blocks)
	if err != nil {
		return "", err
	}
	if len(parts) == 0 {
		return "", Blank
	}
	for i, part := range parts {
		if i > 0 {
			earlier := (&transcript{style: j.prompt.Style}).summary(text)
			part = splitter.between(earlier) + "\n" + part
		}
		var usage Usage
		text, usage, err = s.client.complete(ctx, j.credential, j.model.Name, messages(j.prompt, part))
		event.Calls++
		event.Usage = event.Usage.plus(usage)
		if err != nil {
			return "", err
		}
	}
	return text, nil
}
