package remote

import (
	"context"
	"time"

	"github.com/compactproxy/compactproxy/internal/compactor"
	"github.com/compactproxy/compactproxy/internal/store"
)

// pollInterval is how often the store is asked for the text that another replica writes.
const pollInterval = 100 * time.Millisecond

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

// produce has the text written unless it stands already or another replica is at it: then it waits for that one's text.
func (s *Summarizer) produce(ctx context.Context, j job, as Outcome) result {
	for {
		release, claimed := s.claim(ctx, j.key)
		// Only after the claim: the one who held it before may just have stored the text.
		if text, found := s.recall(ctx, j.key); found {
			release()
			return result{text: text}
		}
		if claimed {
			defer release()
			return s.write(ctx, j, as)
		}
		select {
		case <-time.After(pollInterval):
		case <-ctx.Done():
			return result{err: ended(ctx)}
		}
	}
}

// claim asks for the right to write a text. When the store fails everyone has it.
func (s *Summarizer) claim(ctx context.Context, key store.Key) (release func(), claimed bool) {
	release, claimed, err := s.options.Store.Claim(ctx, key, s.options.Timeout+storeTimeout)
	if err != nil {
		s.storeFailed(ctx, "claim", err)
		return func() {}, true
	}
	return release, claimed
}

// write has the text written and remembers it.
func (s *Summarizer) write(ctx context.Context, j job, as Outcome) result {
	started := s.options.Now()
	event := SummaryEvent{Outcome: as}
	text, err := s.ask(ctx, j, &event)
	standing := text
	if err == nil {
		standing = s.remember(ctx, j.key, text)
	}
	switch {
	case err != nil:
		event.Outcome, event.Reason = Failed, reasonOf(err)
	case standing != text:
		event.Outcome = Late
	}
	event.Duration = s.options.Now().Sub(started)
	s.options.Observer.Summary(event)
	return result{text: standing, err: err, written: event.Outcome == as}
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
