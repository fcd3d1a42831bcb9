package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestARequestOfTooManyItemsIsLeftAlone(t *testing.T) {
	body := func(items int) []byte {
		return []byte(`{"messages":[` + strings.TrimSuffix(strings.Repeat(`{},`, items), ",") + `]}`)
	}
	if _, err := Parse(Chat, body(mostItems)); err != nil {
		t.Error(err)
	}
	if _, err := Parse(Chat, body(mostItems+1)); !errors.Is(err, ErrUnsupported) {
		t.Errorf("got %v", err)
	}
}
